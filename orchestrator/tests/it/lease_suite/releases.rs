//! Giving back, and what the service says a session has.

use super::{LONG, Service, claim, new_session, open, win};
use orchestrator::lease::{Claim, Hold};
use std::slice;

pub(crate) async fn a_released_key_is_free(service: &dyn Service) {
    let leases = service.leases();
    let (one, two) = (open(&*leases, LONG).await, open(&*leases, LONG).await);
    let (a, b) = (win(&*leases, one, "a").await, win(&*leases, one, "b").await);
    leases.release(one, &[b.clone(), a.clone()]).await.unwrap();
    let (a_later, b_later) = (win(&*leases, two, "a").await, win(&*leases, two, "b").await);
    assert!(a_later.token > a.token && b_later.token > b.token);
}

pub(crate) async fn an_old_token_leaves_the_new_hold_alone(service: &dyn Service) {
    let leases = service.leases();
    let (one, two) = (open(&*leases, LONG).await, open(&*leases, LONG).await);
    let old = win(&*leases, one, "a").await;
    leases.release(one, slice::from_ref(&old)).await.unwrap();
    let new = win(&*leases, one, "a").await;
    leases.release(one, slice::from_ref(&old)).await.unwrap();
    assert_eq!(claim(&*leases, two, ["a"]).await, [Claim::Taken]);
    assert_eq!(leases.holds(one).await.unwrap(), [new]);
}

pub(crate) async fn another_sessions_hold_can_not_be_released(service: &dyn Service) {
    let leases = service.leases();
    let (one, two) = (open(&*leases, LONG).await, open(&*leases, LONG).await);
    let held = win(&*leases, one, "a").await;
    leases.release(two, slice::from_ref(&held)).await.unwrap();
    assert_eq!(leases.holds(one).await.unwrap(), [held]);
}

pub(crate) async fn releasing_twice_is_not_an_error(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    let held = win(&*leases, session, "a").await;
    leases.release(session, &[held.clone(), held.clone()]).await.unwrap();
    leases.release(session, slice::from_ref(&held)).await.unwrap();
    win(&*leases, session, "a").await;
}

pub(crate) async fn holds_list_what_the_session_has(service: &dyn Service) {
    let leases = service.leases();
    let (one, two) = (open(&*leases, LONG).await, open(&*leases, LONG).await);
    let sorted = |mut holds: Vec<Hold>| {
        holds.sort();
        holds
    };
    let (a, b) = (win(&*leases, one, "a").await, win(&*leases, one, "b").await);
    let c = win(&*leases, two, "c").await;
    assert_eq!(sorted(leases.holds(one).await.unwrap()), [a.clone(), b.clone()]);
    assert_eq!(leases.holds(two).await.unwrap(), [c]);
    leases.release(one, &[a]).await.unwrap();
    assert_eq!(leases.holds(one).await.unwrap(), [b]);
    assert_eq!(leases.holds(new_session()).await.unwrap(), []);
}
