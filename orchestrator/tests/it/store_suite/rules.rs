//! What a winner writes, and what no winner may write.

use super::fixture::{Fixture, assert_refused, attempt_id, change_to, intent_id, new_attempt, session};
use chrono::TimeDelta;
use jobs::refund::intent::{Attempt, AttemptKind, NextAction};
use jobs::refund::state::State;
use orchestrator::store::change::{Change, WriteResult};
use std::sync::Arc;

pub(crate) async fn an_install_is_read_back_as_written(fixture: &Fixture) {
    let recorded = fixture.intent("r-1").await;
    let until = fixture.far_future().await;
    let mut change = fixture.installing(&recorded, 7, until);
    change.rung = 3;
    change.state_reason = Some("resent".to_owned());
    let new = change.attempt.as_mut().unwrap();
    new.grounds = Some("absent at 12:00, key lives until 18:00".to_owned());
    let new = new.clone();
    fixture.write(change).await;

    let file = fixture.file("r-1").await;
    let intent = &file.intent;
    assert_eq!((intent.version, intent.fence, intent.state), (2, fixture.token(7), State::Sending));
    assert_eq!((intent.holder_session, intent.open_attempt), (Some(session(7)), Some(new.attempt_id)));
    assert_eq!((intent.next_action, intent.next_action_at, intent.rung), (NextAction::Lookup, Some(until), 3));
    assert_eq!(intent.state_reason.as_deref(), Some("resent"));
    assert_eq!((&intent.idempotency_key, &intent.create_body), (&recorded.idempotency_key, &recorded.create_body));
    assert_eq!((intent.created_at, intent.amount), (recorded.created_at, recorded.amount));
    let expected = Attempt {
        attempt_id: new.attempt_id,
        intent_id: intent_id("r-1"),
        kind: AttemptKind::Create,
        token: fixture.token(7),
        session: session(7),
        installed_version: 2,
        started_at: new.started_at,
        deadline: new.deadline,
        key_expires_at: new.key_expires_at,
        absent_until: new.absent_until,
        grounds: new.grounds,
        outcome: None,
    };
    assert_eq!(file.attempts, [expected]);

    // A second step of the same hold: a lookup that carries the key's time on.
    let mut lookup = fixture.installing(intent, 7, until);
    let id = attempt_id("r-1", 8);
    lookup.open_attempt = Some(id);
    lookup.state = State::Unknown;
    let mut attempt = new_attempt(id, until);
    attempt.kind = AttemptKind::Lookup;
    attempt.absent_until = None;
    lookup.attempt = Some(attempt);
    fixture.write(lookup).await;
    let attempts = fixture.file("r-1").await.attempts;
    let seen: Vec<_> = attempts.iter().map(|attempt| (attempt.kind, attempt.installed_version)).collect();
    assert_eq!(seen, [(AttemptKind::Create, 2), (AttemptKind::Lookup, 3)]);
}

pub(crate) async fn a_row_that_breaks_a_rule_fails_the_whole_batch(fixture: &Fixture) {
    let good = fixture.intent("r-good").await;
    let bad = fixture.intent("r-bad").await;
    let future = fixture.far_future().await;
    let check = async |rule: &str, state: State, alter: fn(&mut Change)| {
        let mut breaking = change_to(&bad, fixture.token(1), state, future);
        alter(&mut breaking);
        let winning = change_to(&good, fixture.token(1), State::Canceled, future);
        assert_refused(&fixture.store.apply(&[winning, breaking]).await, rule);
        assert_eq!(fixture.row("r-good").await, good, "{rule}");
        assert_eq!(fixture.row("r-bad").await, bad, "{rule}");
        assert_eq!(fixture.payment("p-r-good").await.reserved_minor, 100, "{rule}");
    };
    for state in [State::Recorded, State::Unknown, State::Processing] {
        check("refund_intents_never_silent", state, |change| {
            change.next_action = NextAction::None;
            change.next_action_at = None;
        })
        .await;
        check("refund_intents_never_silent", state, |change| change.next_action_at = None).await;
        check("refund_intents_never_silent", state, |change| change.next_action = NextAction::None).await;
    }
    check("refund_intents_never_silent", State::Failed, |change| change.next_action = NextAction::Lookup).await;
    check("refund_intents_parked_with_reason", State::NeedsReview, |change| change.state_reason = None).await;
    check("refund_intents_holder_with_attempt", State::Unknown, |change| change.holder_session = Some(session(1)))
        .await;
    check("refund_intents_holder_with_attempt", State::Unknown, |change| {
        change.open_attempt = Some(attempt_id("r-bad", 1));
    })
    .await;
    check("refund_intents_sending_is_open", State::Sending, |_| ()).await;
    check("refund_intents_rung_not_negative", State::Unknown, |change| change.rung = -1).await;
}

pub(crate) async fn an_attempt_is_the_one_its_intent_has_open(fixture: &Fixture) {
    let intent = fixture.intent("r-1").await;
    let future = fixture.far_future().await;
    let mut other = fixture.installing(&intent, 1, future);
    other.open_attempt = Some(attempt_id("other", 1));
    assert_refused(&fixture.store.apply(&[other]).await, "refund_attempts_fence");
    let mut none_open = change_to(&intent, fixture.token(1), State::Unknown, future);
    none_open.attempt = Some(new_attempt(attempt_id("r-1", 1), future));
    assert!(fixture.store.apply(&[none_open]).await.is_err());
    let file = fixture.file("r-1").await;
    assert_eq!((file.intent, file.attempts), (intent, Vec::new()));
}

pub(crate) async fn an_attempt_id_is_used_once(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let used = fixture.install("r-1", 1).await.open_attempt.unwrap();
    let second = fixture.intent("r-2").await;
    let mut change = fixture.installing(&second, 1, fixture.far_future().await);
    change.open_attempt = Some(used);
    change.attempt.as_mut().unwrap().attempt_id = used;
    // Which rule speaks differs between engines.
    assert_refused(&fixture.store.apply(&[change]).await, "");
    assert_eq!(fixture.row("r-2").await, second);
}

pub(crate) async fn ten_parallel_installs_have_one_winner(fixture: &Fixture) {
    for round in 0..10 {
        let id = format!("r-{round}");
        let intent = fixture.intent(&id).await;
        let future = fixture.far_future().await + TimeDelta::hours(1);
        let mut tasks = tokio::task::JoinSet::new();
        for counter in 1..=10 {
            let store = Arc::clone(&fixture.store);
            let change = fixture.installing(&intent, counter, future);
            tasks.spawn(async move { (counter, store.apply(&[change]).await.unwrap()[0]) });
        }
        let results = tasks.join_all().await;
        let winners: Vec<i64> =
            results.iter().filter(|(_, result)| *result == WriteResult::Written).map(|(counter, _)| *counter).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let file = fixture.file(&id).await;
        assert_eq!((file.intent.version, file.intent.fence), (2, fixture.token(winners[0])));
        assert_eq!(file.attempts.len(), 1);
        for (counter, result) in results {
            // Whoever lost to a higher token is stale; whoever holds a higher one only came too late.
            let expected = match counter.cmp(&winners[0]) {
                std::cmp::Ordering::Less => WriteResult::StaleToken,
                std::cmp::Ordering::Equal => WriteResult::Written,
                std::cmp::Ordering::Greater => WriteResult::StateMoved,
            };
            assert_eq!(result, expected, "{counter} against {}", winners[0]);
        }
    }
}
