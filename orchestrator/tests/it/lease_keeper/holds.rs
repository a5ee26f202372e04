//! Strays are given back, holds are not held for ever, and the numbers are counted.

use super::script::Mood;
use super::{Replica, claim, keys, pass, seconds};
use orchestrator::lease::{CLAIM_MAX, Claim, LeaseError, Leases, ResourceKey};

#[tokio::test(start_paused = true)]
async fn what_an_unanswered_claim_took_is_given_back_soon() {
    let replica = Replica::start();
    let session = replica.session().await;
    let kept = claim(&session, &["kept"]).await;
    replica.service.become_(Mood::ClaimsUnanswered);
    let error = session.claim(&keys(&["a", "b"])).await.unwrap_err();
    assert_eq!(error.to_string(), "the lease service did not answer: claim: silent for 2s");
    assert_eq!(replica.service.held(session.id()).await, 3);
    pass(seconds(3)).await;
    assert_eq!(replica.service.held(session.id()).await, 1);
    assert!(kept[0].is_good());
    replica.service.become_(Mood::Answering);
    assert_eq!(claim(&session, &["a", "b"]).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_an_unanswered_claim_took_late_is_given_back_within_a_minute() {
    let replica = Replica::start();
    let session = replica.session().await;
    replica.service.become_(Mood::Silent);
    session.claim(&keys(&["a"])).await.unwrap_err();
    replica.service.become_(Mood::Answering);
    pass(seconds(30)).await;
    // Only now does it arrive.
    let late = replica.service.memory.claim(session.id(), &keys(&["a"])).await.unwrap();
    assert!(matches!(late[..], [Claim::Held(_)]));
    pass(seconds(60)).await;
    assert_eq!(replica.service.held(session.id()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_dropped_leaves_no_stray() {
    let replica = Replica::start();
    let session = replica.session().await;
    replica.service.become_(Mood::ClaimsUnanswered);
    let keys = keys(&["a"]);
    let cut = tokio::time::timeout(seconds(1), session.claim(&keys)).await;
    assert!(cut.is_err());
    assert_eq!(replica.service.held(session.id()).await, 1);
    pass(seconds(3)).await;
    assert_eq!(replica.service.held(session.id()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn holds_in_hand_survive_every_sweep_and_dropped_ones_do_not() {
    let replica = Replica::start();
    let session = replica.session().await;
    let mut leases = claim(&session, &["a", "b", "c"]).await;
    drop(leases.pop());
    for _ in 0..10 {
        pass(seconds(61)).await;
        leases.iter_mut().for_each(orchestrator::lease::HeldLease::begin_step);
        assert_eq!(replica.service.held(session.id()).await, 2);
    }
    assert!(leases.iter().all(orchestrator::lease::HeldLease::is_good));
    session.release(leases).await.unwrap();
    assert_eq!(replica.service.held(session.id()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_was_not_answered_is_made_up_for() {
    let replica = Replica::start();
    let session = replica.session().await;
    let leases = claim(&session, &["a"]).await;
    replica.service.become_(Mood::Failing);
    assert!(matches!(session.release(leases).await, Err(LeaseError::Unavailable(_))));
    replica.service.become_(Mood::Answering);
    pass(seconds(5)).await;
    assert_eq!(replica.service.held(session.id()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_step_loses_its_hold_and_is_counted() {
    let replica = Replica::start();
    let session = replica.session().await;
    let mut leases = claim(&session, &["stuck", "stepping"]).await;
    let (mut stepping, stuck) = (leases.pop().unwrap(), leases.pop().unwrap());
    pass(seconds(74)).await;
    assert!(stuck.is_good());
    stepping.begin_step();
    // Ends with the hold maximum of 75 s, though the session is renewed all the while.
    tokio::time::timeout(seconds(2), stuck.ended()).await.unwrap();
    assert!(!stuck.is_good() && stepping.is_good() && session.is_trusted());
    assert_eq!(replica.service.held(session.id()).await, 1);
    assert_eq!(replica.metric("hold_expired_total"), 1);
    // Its key is someone else's to claim, and dropping it takes nothing from them.
    let again = claim(&session, &["stuck"]).await;
    drop(stuck);
    pass(seconds(61)).await;
    assert!(again[0].is_good());
    assert_eq!(replica.service.held(session.id()).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_hold_past_its_maximum_begins_no_step() {
    let replica = Replica::start();
    let session = replica.session().await;
    let mut lease = claim(&session, &["a"]).await.remove(0);
    pass(seconds(75)).await;
    assert!(!lease.is_good());
    lease.begin_step();
    assert!(!lease.is_good());
}

#[tokio::test(start_paused = true)]
async fn more_keys_than_one_request_takes_go_in_several() {
    let replica = Replica::start();
    let session = replica.session().await;
    let keys: Vec<ResourceKey> = (0..=CLAIM_MAX * 2).map(|n| ResourceKey(format!("intent/{n:05}"))).collect();
    let leases: Vec<_> = session.claim(&keys).await.unwrap().into_iter().map(Option::unwrap).collect();
    assert!(leases.iter().map(|lease| lease.key()).eq(keys.iter()));
    assert_eq!(session.held_count(), CLAIM_MAX * 2 + 1);
    session.release(leases).await.unwrap();
    assert_eq!((session.held_count(), replica.service.held(session.id()).await), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn claims_waits_and_holds_are_counted() {
    let replica = Replica::start();
    let session = replica.session().await;
    let leases = claim(&session, &["a", "b"]).await;
    let taken = session.claim(&keys(&["a"])).await.unwrap();
    assert!(taken[0].is_none());
    pass(seconds(3)).await;
    session.release(leases).await.unwrap();
    replica.service.become_(Mood::Failing);
    session.claim(&keys(&["a"])).await.unwrap_err();
    let acquired =
        |result: &str| replica.metric(&format!("lock_acquire_total{{backend=\"memory\",result=\"{result}\"}}"));
    assert_eq!((acquired("held"), acquired("taken"), acquired("error")), (2, 1, 1));
    assert_eq!(replica.metric("lock_wait_seconds_count"), 3);
    assert_eq!(replica.metric("lock_hold_seconds_count"), 2);
    assert_eq!(replica.metric("lock_hold_seconds_sum"), 6);
}
