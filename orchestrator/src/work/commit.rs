//! Step 4 for many intents in one transaction.
//!
//! Trust is checked for each item when its batch is written. What the database did not take goes to the inbox. A commit whose answer
//! was lost is read back by attempt id, never repeated blindly.

use super::Shared;
use super::evidence::Evidence;
use super::hold::Held;
use super::write::{self, Written, Wrote};
use crate::store::change::{Change, WriteResult};
use jobs::ids::IntentId;
use jobs::refund::state::State;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;

/// An answered call and what it makes of its intent.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) held: Held,
    pub(super) change: Change,
    /// The state the call was installed with.
    pub(super) before: State,
}

impl From<Answered> for Wrote {
    fn from(Answered { held, change, before }: Answered) -> Self {
        Self { held, change, before }
    }
}

pub(super) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<Answered>) {
    while let Some(batch) = shared.next_batch(&mut queue).await {
        commit(&shared, batch).await;
    }
}

async fn commit(shared: &Shared, batch: Vec<Answered>) {
    let (trusted, lost): (Vec<_>, Vec<_>) = batch.into_iter().partition(|answered| answered.held.lease.is_good());
    for answered in lost {
        keep_as_evidence(shared, answered).await;
    }
    let changes: Vec<Change> = trusted.iter().map(|answered| answered.change.clone()).collect();
    let results = write::apply(shared, &changes).await;
    let mut wrote = Vec::with_capacity(trusted.len());
    let mut unanswered = Vec::new();
    for (answered, result) in trusted.into_iter().zip(results) {
        match result {
            Written::Yes => wrote.push(answered.into()),
            Written::Unknown => unanswered.push(answered),
            Written::No(lost) => {
                if lost == WriteResult::StaleToken {
                    shared.metrics.fence_rejected("intent", 1);
                }
                let Change { intent_id, token, .. } = &answered.change;
                tracing::warn!(%intent_id, %token, ?lost, "an outcome was refused; it goes to the inbox");
                keep_as_evidence(shared, answered).await;
            }
            Written::Failed => keep_as_evidence(shared, answered).await,
        }
    }
    read_back(shared, unanswered, &mut wrote).await;
    write::after(shared, wrote).await;
}

/// An unanswered commit either took effect whole or not at all: the outcome of its attempt tells.
async fn read_back(shared: &Shared, unanswered: Vec<Answered>, wrote: &mut Vec<Wrote>) {
    if unanswered.is_empty() {
        return;
    }
    let ids: Vec<IntentId> = unanswered.iter().map(|answered| answered.change.intent_id.clone()).collect();
    let recorded: BTreeSet<_> = match shared.store.load(&ids).await {
        Ok(loaded) => loaded
            .files
            .into_iter()
            .flat_map(|file| file.attempts)
            .filter(|attempt| attempt.outcome.is_some())
            .map(|attempt| attempt.attempt_id)
            .collect(),
        Err(_) => BTreeSet::new(),
    };
    for answered in unanswered {
        let is_recorded = answered.change.outcomes.iter().all(|outcome| recorded.contains(&outcome.attempt_id));
        if is_recorded {
            wrote.push(answered.into());
        } else {
            keep_as_evidence(shared, answered).await;
        }
    }
}

async fn keep_as_evidence(shared: &Shared, answered: Answered) {
    let Answered { held, change, .. } = answered;
    let Some(outcome) = change.outcomes.into_iter().next() else { return };
    let evidence =
        Evidence { held, attempt_id: outcome.attempt_id, outcome: outcome.outcome, duration_ms: outcome.duration_ms };
    if shared.to_evidence.send(evidence).await.is_err() {
        tracing::error!(intent_id = %change.intent_id, "an answer could not be kept; the next holder looks up");
    }
}
