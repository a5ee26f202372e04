//! Who gets what, and with which number.

use super::{LONG, SHORT, Service, claim, keys, open, token, win};
use jobs::ids::Token;
use orchestrator::lease::{CLAIM_MAX, Claim, LeaseError, ResourceKey};
use std::collections::BTreeMap;
use std::slice;

pub(crate) async fn of_two_sessions_one_gets_the_key(service: &dyn Service) {
    let leases = service.leases();
    let (one, two) = (open(&*leases, LONG).await, open(&*leases, LONG).await);
    let held = win(&*leases, one, "a").await;
    assert!(held.token > Token::NONE);
    let [a, b] = claim(&*leases, two, ["a", "b"]).await;
    assert_eq!(a, Claim::Taken);
    assert!(token(b) > Token::NONE);
}

pub(crate) async fn the_same_key_twice_is_taken_the_second_time(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    let [first, other, second] = claim(&*leases, session, ["a", "b", "a"]).await;
    assert!(matches!((first, other, second), (Claim::Held(_), Claim::Held(_), Claim::Taken)));
}

pub(crate) async fn a_key_of_this_very_session_is_taken_too(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    let held = win(&*leases, session, "a").await;
    assert_eq!(claim(&*leases, session, ["a"]).await, [Claim::Taken]);
    assert_eq!(leases.holds(session).await.unwrap(), [held]);
}

pub(crate) async fn answers_come_in_the_order_of_the_keys(service: &dyn Service) {
    let leases = service.leases();
    let (one, two) = (open(&*leases, LONG).await, open(&*leases, LONG).await);
    win(&*leases, one, "m").await;
    let [z, m, a] = claim(&*leases, two, ["z", "m", "a"]).await;
    assert_eq!(m, Claim::Taken);
    let mut held: Vec<_> = leases.holds(two).await.unwrap().into_iter().map(|hold| (hold.key, hold.token)).collect();
    held.sort();
    assert_eq!(held, keys(["a", "z"]).into_iter().zip([token(a), token(z)]).collect::<Vec<_>>());
}

pub(crate) async fn tokens_of_a_key_rise_whatever_ended_the_hold(service: &dyn Service) {
    let leases = service.leases();
    let mut tokens = Vec::new();
    let session = open(&*leases, LONG).await;
    for _ in 0..3 {
        let held = win(&*leases, session, "a").await;
        leases.release(session, slice::from_ref(&held)).await.unwrap();
        tokens.push(held.token);
    }
    let closing = open(&*leases, LONG).await;
    tokens.push(win(&*leases, closing, "a").await.token);
    leases.close_session(closing).await.unwrap();
    let dying = open(&*leases, SHORT).await;
    tokens.push(win(&*leases, dying, "a").await.token);
    service.outlive(dying).await;
    tokens.push(win(&*leases, session, "a").await.token);
    service.raise_epoch().await;
    let session = open(&*leases, LONG).await;
    tokens.push(win(&*leases, session, "a").await.token);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

pub(crate) async fn of_fifty_tasks_on_overlapping_keys_one_wins_each(service: &dyn Service) {
    let leases = service.leases();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..50_usize {
        let leases = leases.clone();
        tasks.spawn(async move {
            let session = open(&*leases, LONG).await;
            // Each task asks for all keys in an order of its own.
            let keys: Vec<ResourceKey> =
                (0..100).map(|n| ResourceKey(format!("intent/{:03}", (n * 7 + task * 13) % 100))).collect();
            let answers = leases.claim(session, &keys).await.unwrap();
            keys.into_iter()
                .zip(answers)
                .filter_map(|(key, answer)| match answer {
                    Claim::Held(token) => Some((key, token)),
                    Claim::Taken => None,
                })
                .collect::<Vec<_>>()
        });
    }
    let mut winners: BTreeMap<ResourceKey, Vec<Token>> = BTreeMap::new();
    while let Some(won) = tasks.join_next().await {
        for (key, token) in won.unwrap() {
            winners.entry(key).or_default().push(token);
        }
    }
    assert_eq!(winners.len(), 100);
    assert!(winners.values().all(|tokens| tokens.len() == 1), "{winners:?}");
}

pub(crate) async fn a_full_claim_passes_and_a_larger_one_is_refused(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    let mut keys: Vec<ResourceKey> = (0..CLAIM_MAX).map(|n| ResourceKey(format!("intent/{n}"))).collect();
    let answers = leases.claim(session, &keys).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Claim::Held(_))));
    let holds = leases.holds(session).await.unwrap();
    assert_eq!(holds.len(), CLAIM_MAX);
    leases.release(session, &holds).await.unwrap();
    assert_eq!(leases.holds(session).await.unwrap(), []);
    keys.push(ResourceKey("intent/more".to_owned()));
    let refused = leases.claim(session, &keys).await.unwrap_err();
    assert_eq!(refused.to_string(), "1001 keys in one request, at most 1000");
    let holds = vec![holds[0].clone(); CLAIM_MAX + 1];
    let refused = leases.release(session, &holds).await.unwrap_err();
    assert!(matches!(refused, LeaseError::TooMany { count: 1_001 }));
}

pub(crate) async fn nothing_asked_is_nothing_answered(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    assert_eq!(leases.claim(session, &[]).await.unwrap(), []);
    leases.release(session, &[]).await.unwrap();
    assert_eq!(leases.holds(session).await.unwrap(), []);
}
