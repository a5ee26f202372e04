//! How long a session is believed in, and what comes after it.

use super::script::Mood;
use super::{Replica, claim, keys, pass, seconds};
use jobs::ids::SessionId;
use orchestrator::lease::keeper::KeeperStatus;
use orchestrator::lease::{LeaseError, Leases};
use std::sync::atomic::Ordering;
use std::time::Duration;
use uuid::Uuid;

#[track_caller]
fn assert_not_ready(replica: &Replica, expected: &str) {
    match replica.keeper.status() {
        KeeperStatus::NotReady(reason) if reason.contains(expected) => {}
        other => panic!("{other:?} does not say {expected:?}"),
    }
    assert!(replica.keeper.current().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_renewed_session_stays_for_hours() {
    let replica = Replica::start();
    assert_not_ready(&replica, "no session was opened yet");
    let session = replica.session().await;
    pass(seconds(7_200)).await;
    assert_eq!(replica.keeper.status(), KeeperStatus::Ready);
    assert_eq!(replica.keeper.current().unwrap().id(), session.id());
    let renewals = replica.service.renewals.load(Ordering::SeqCst);
    assert!((2_390..=2_401).contains(&renewals), "{renewals} renewals, one each 3 s expected");
}

#[tokio::test(start_paused = true)]
async fn a_silent_service_ends_trust_in_time() {
    let replica = Replica::start();
    let session = replica.session().await;
    let lease = claim(&session, &["a"]).await.remove(0);
    pass(seconds(1)).await;
    replica.service.become_(Mood::Silent);
    // Opened at 0: TTL 10 s less the margin of 2 s.
    pass(Duration::from_millis(6_990)).await;
    assert!(session.is_trusted() && lease.is_good());
    pass(Duration::from_millis(10)).await;
    assert!(!session.is_trusted() && !lease.is_good());
    assert!(matches!(session.claim(&keys(&["b"])).await, Err(LeaseError::SessionLost(_))));
    // Whoever waits for the end hears it.
    lease.ended().await;
    pass(seconds(1)).await;
    assert_not_ready(&replica, "trust window over");
    assert!(replica.metric("lock_renew_fail_total") >= 2);
    // And nothing it does brings trust back.
    replica.service.become_(Mood::Answering);
    let next = replica.session().await;
    assert_ne!(next.id(), session.id());
    assert!(!session.is_trusted() && !lease.is_good());
}

#[tokio::test(start_paused = true)]
async fn failed_renewals_inside_the_window_cost_nothing() {
    let replica = Replica::start();
    let session = replica.session().await;
    pass(Duration::from_millis(2_900)).await;
    replica.service.become_(Mood::Failing);
    pass(seconds(4)).await;
    replica.service.become_(Mood::Answering);
    pass(seconds(60)).await;
    assert_eq!(replica.keeper.current().unwrap().id(), session.id());
    assert!(session.is_trusted());
    assert!(replica.metric("lock_renew_fail_total") >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_the_service_forgot_is_followed_by_another_that_revives_nothing() {
    let replica = Replica::start();
    let session = replica.session().await;
    let mut lease = claim(&session, &["a"]).await.remove(0);
    replica.service.memory.end_session(session.id());
    let next = replica.keeper.changed(Some(session.id())).await;
    assert!(next.is_none(), "between two sessions there is none");
    let next = replica.session().await;
    assert_ne!(next.id(), session.id());
    lease.begin_step();
    assert!(!lease.is_good());
    let again = claim(&next, &["a"]).await.remove(0);
    assert!(again.token() > lease.token());
    // The old hold's release takes nothing from the new one.
    session.release(vec![lease]).await.unwrap();
    assert_eq!(replica.service.held(next.id()).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_finds_the_session_gone_ends_it_at_once() {
    let replica = Replica::start();
    let session = replica.session().await;
    replica.service.memory.end_session(session.id());
    let gone = session.claim(&keys(&["a"])).await.unwrap_err();
    assert_eq!(gone.to_string(), format!("session {} is gone", session.id()));
    assert!(!session.is_trusted());
    tokio::time::timeout(seconds(1), replica.session()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_suspended_machine_trusts_nothing_when_it_wakes() {
    let replica = Replica::start();
    let session = replica.session().await;
    let lease = claim(&session, &["a"]).await.remove(0);
    replica.clock.suspend(8);
    assert!(!session.is_trusted() && !lease.is_good());
    pass(seconds(5)).await;
    assert_ne!(replica.session().await.id(), session.id());
    assert!(!lease.is_good());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_open_is_asked_again_with_pauses() {
    let replica = Replica::start();
    replica.service.become_(Mood::Failing);
    pass(seconds(60)).await;
    assert_not_ready(&replica, "no session: the lease service did not answer: scripted failure");
    let opens = replica.service.opens.load(Ordering::SeqCst);
    assert!((12..=40).contains(&opens), "{opens} tries in a minute");
    replica.service.become_(Mood::Answering);
    tokio::time::timeout(seconds(6), replica.session()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutting_down_closes_the_session() {
    let replica = Replica::start();
    let session = replica.session().await;
    let lease = claim(&session, &["a"]).await.remove(0);
    replica.shutdown.send(true).unwrap();
    replica.running.await.unwrap();
    assert!(!lease.is_good());
    assert!(replica.keeper.current().is_none());
    assert_eq!(replica.service.memory.live_sessions().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_does_not_wait_for_a_silent_service() {
    let replica = Replica::start();
    replica.session().await;
    replica.service.become_(Mood::Silent);
    replica.shutdown.send(true).unwrap();
    tokio::time::timeout(seconds(3), replica.running).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn trust_ends_by_itself_when_the_keeper_is_dropped() {
    let replica = Replica::start();
    let session = replica.session().await;
    replica.running.abort();
    pass(seconds(8)).await;
    assert!(!session.is_trusted());
    assert!(matches!(replica.keeper.status(), KeeperStatus::NotReady(_)));
}

#[tokio::test(start_paused = true)]
async fn live_sessions_are_known_within_a_renewal() {
    let replica = Replica::start();
    let own = replica.session().await.id();
    let other = SessionId(Uuid::from_u128(1));
    replica.service.memory.open_session(other, "other", seconds(60)).await.unwrap();
    pass(seconds(4)).await;
    let live = replica.keeper.live_sessions();
    assert!(live.refreshed_at.is_some());
    assert_eq!(live.sessions.len(), 2);
    assert!(live.sessions.contains(&own) && live.sessions.contains(&other));
    replica.service.memory.end_session(other);
    replica.keeper.refresh_live_sessions().await.unwrap();
    assert_eq!(replica.keeper.live_sessions().sessions, [own]);
}
