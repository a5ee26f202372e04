//! How sessions begin, live and end.

use super::{LONG, SHORT, Service, claim, keys, new_session, open, win};
use jobs::ids::SessionId;
use orchestrator::lease::{Claim, LeaseError, Leases, Renewal};
use std::slice;

async fn assert_lost(leases: &dyn Leases, session: SessionId) {
    let error = leases.claim(session, &keys(["other"])).await.unwrap_err();
    assert!(matches!(error, LeaseError::SessionLost(lost) if lost == session), "{error}");
    assert_eq!(error.to_string(), format!("session {session} is gone"));
    assert_eq!(leases.renew(session).await.unwrap(), Renewal::Lost);
    assert!(!leases.live_sessions().await.unwrap().contains(&session));
}

pub(crate) async fn an_expired_session_can_neither_claim_nor_renew(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, SHORT).await;
    service.outlive(session).await;
    assert_eq!(leases.renew(session).await.unwrap(), Renewal::Lost);
    assert_lost(&*leases, session).await;
    assert_lost(&*leases, session).await;
}

pub(crate) async fn what_an_expired_session_held_is_free(service: &dyn Service) {
    let leases = service.leases();
    let (dying, other) = (open(&*leases, SHORT).await, open(&*leases, LONG).await);
    let old = win(&*leases, dying, "a").await;
    service.outlive(dying).await;
    assert_eq!(leases.holds(dying).await.unwrap(), []);
    assert!(win(&*leases, other, "a").await.token > old.token);
}

pub(crate) async fn a_renewed_session_lives_on(service: &dyn Service) {
    let leases = service.leases();
    let (renewed, silent) = (open(&*leases, LONG).await, open(&*leases, SHORT).await);
    let held = win(&*leases, renewed, "a").await;
    service.outlive(silent).await;
    for _ in 0..3 {
        service.pass_most_of_long(renewed).await;
        assert_eq!(leases.renew(renewed).await.unwrap(), Renewal::Renewed);
    }
    assert_eq!(leases.holds(renewed).await.unwrap(), [held]);
    assert_eq!(leases.renew(silent).await.unwrap(), Renewal::Lost);
}

pub(crate) async fn a_holder_that_believes_too_long_disturbs_nobody(service: &dyn Service) {
    let leases = service.leases();
    let (believer, other) = (open(&*leases, SHORT).await, open(&*leases, LONG).await);
    let old = win(&*leases, believer, "a").await;
    service.outlive(believer).await;
    let new = win(&*leases, other, "a").await;
    leases.release(believer, slice::from_ref(&old)).await.unwrap();
    assert_lost(&*leases, believer).await;
    leases.close_session(believer).await.unwrap();
    assert_eq!(leases.holds(other).await.unwrap(), [new]);
}

pub(crate) async fn closing_frees_at_once(service: &dyn Service) {
    let leases = service.leases();
    let (one, two) = (open(&*leases, LONG).await, open(&*leases, LONG).await);
    win(&*leases, one, "a").await;
    let kept = win(&*leases, two, "b").await;
    leases.close_session(one).await.unwrap();
    assert_lost(&*leases, one).await;
    win(&*leases, two, "a").await;
    assert!(leases.holds(two).await.unwrap().contains(&kept));
}

pub(crate) async fn closing_twice_is_not_an_error(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    leases.close_session(session).await.unwrap();
    leases.close_session(session).await.unwrap();
    leases.close_session(new_session()).await.unwrap();
}

pub(crate) async fn an_identity_opens_one_session(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    let held = win(&*leases, session, "a").await;
    let again = leases.open_session(session, "suite", LONG).await.unwrap_err();
    assert!(matches!(again, LeaseError::SessionLost(_)), "{again}");
    assert_eq!(leases.holds(session).await.unwrap(), [held]);
}

pub(crate) async fn a_session_nobody_opened_is_lost(service: &dyn Service) {
    let leases = service.leases();
    assert_lost(&*leases, new_session()).await;
    let opened = open(&*leases, LONG).await;
    assert_lost(&*leases, new_session()).await;
    assert_eq!(claim(&*leases, opened, ["a"]).await.map(|answer| answer != Claim::Taken), [true]);
}

pub(crate) async fn live_sessions_are_listed(service: &dyn Service) {
    let leases = service.leases();
    assert_eq!(leases.live_sessions().await.unwrap(), []);
    let (closing, dying, living) =
        (open(&*leases, LONG).await, open(&*leases, SHORT).await, open(&*leases, LONG).await);
    leases.close_session(closing).await.unwrap();
    assert!(leases.live_sessions().await.unwrap().contains(&living));
    service.outlive(dying).await;
    assert_eq!(leases.live_sessions().await.unwrap(), [living]);
}
