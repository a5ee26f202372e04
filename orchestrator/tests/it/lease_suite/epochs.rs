//! What a new generation of the service means for sessions and tokens.

use super::{LONG, Service, keys, open, win};
use orchestrator::lease::{LeaseError, Renewal};

pub(crate) async fn a_new_epoch_ends_all_sessions(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    win(&*leases, session, "a").await;
    service.raise_epoch().await;
    assert_eq!(leases.renew(session).await.unwrap(), Renewal::Lost);
    let error = leases.claim(session, &keys(["b"])).await.unwrap_err();
    assert!(matches!(error, LeaseError::SessionLost(_)), "{error}");
    assert_eq!(leases.live_sessions().await.unwrap(), []);
    let next = open(&*leases, LONG).await;
    win(&*leases, next, "a").await;
}

pub(crate) async fn a_new_epochs_tokens_beat_all_older_ones(service: &dyn Service) {
    let leases = service.leases();
    let session = open(&*leases, LONG).await;
    let old = win(&*leases, session, "a").await.token;
    let epoch = service.raise_epoch().await;
    let session = open(&*leases, LONG).await;
    let new = win(&*leases, session, "b").await.token;
    assert_eq!((old.epoch, new.epoch), (1, epoch));
    assert!(new > old);
}
