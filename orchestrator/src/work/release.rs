//! Gives leases back in bulk: step 5.

use super::Shared;
use super::hold::Held;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

pub(super) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<Held>) {
    while let Some(batch) = shared.next_batch(&mut queue).await {
        release(batch).await;
    }
}

/// Holds of one session go together; after a loss of the session there may be two.
async fn release(batch: Vec<Held>) {
    let mut by_session = BTreeMap::new();
    let mut in_hand = Vec::with_capacity(batch.len());
    for Held { lease, _room, _in_hand, .. } in batch {
        by_session.entry(lease.session_id()).or_insert_with(Vec::new).push(lease);
        in_hand.push((_room, _in_hand));
    }
    for leases in by_session.into_values() {
        let Some(session) = leases.first().map(|lease| lease.session().clone()) else { continue };
        if let Err(error) = session.release(leases).await {
            tracing::warn!(error = %crate::report(&error), "leases could not be released; they end with their session or as strays");
        }
    }
}
