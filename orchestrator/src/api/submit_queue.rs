//! Group commit of submits: requests that arrive while a transaction runs share the next one.
//!
//! One loop drains the queue, up to [`GROUP_MAX`] placeholders at a time, and answers each request from the store's result. Nothing
//! is acknowledged before its transaction is committed. Across a crash: a request still in the queue was not answered and is not on record.
//! A group that the database refuses is tried one by one, so that one row can not fail its neighbours.

use crate::store::submit::{NewIntent, SubmitResult};
use crate::store::{Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Placeholders in one transaction. Larger ones gain little and make the first request wait for the last.
pub const GROUP_MAX: usize = 500;
/// Requests that may wait; about a second's worth. Beyond it callers are told to come back.
pub const QUEUE_MAX: usize = 4_096;

/// Why a submit has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitFailure {
    /// Nothing was recorded.
    #[error("the submit queue is full")]
    QueueFull,
    /// Whether it was recorded is not known.
    #[error("the database did not answer")]
    Unavailable,
    /// The database refused the row; the log has the reason.
    #[error("the database refused the placeholder")]
    Refused,
}

struct Waiting {
    intent: NewIntent,
    answer: oneshot::Sender<Result<SubmitResult, SubmitFailure>>,
}

/// The handlers' end of the queue.
#[derive(Clone)]
pub struct SubmitQueue {
    sender: mpsc::Sender<Waiting>,
}

impl std::fmt::Debug for SubmitQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SubmitQueue")
    }
}

/// The loop's end of the queue.
pub struct SubmitLoop {
    receiver: mpsc::Receiver<Waiting>,
    store: Arc<dyn Store>,
}

impl std::fmt::Debug for SubmitLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SubmitLoop")
    }
}

/// Makes a queue; its loop must be run by the node.
#[must_use]
pub fn submit_queue(store: Arc<dyn Store>) -> (SubmitQueue, SubmitLoop) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    (SubmitQueue { sender }, SubmitLoop { receiver, store })
}

impl SubmitQueue {
    /// Waits for the commit that holds this placeholder.
    pub async fn submit(&self, intent: NewIntent) -> Result<SubmitResult, SubmitFailure> {
        let (answer, answered) = oneshot::channel();
        self.sender.try_send(Waiting { intent, answer }).map_err(|_| SubmitFailure::QueueFull)?;
        // The loop ends only with the node; then nothing tells whether the row was written.
        answered.await.unwrap_or(Err(SubmitFailure::Unavailable))
    }
}

impl SubmitLoop {
    /// Runs until every handle of the queue is dropped and it is empty.
    pub async fn run(mut self) {
        let mut carried: Vec<Waiting> = Vec::new();
        loop {
            let mut drained = std::mem::take(&mut carried);
            let room = GROUP_MAX.saturating_sub(drained.len());
            if drained.is_empty() {
                if self.receiver.recv_many(&mut drained, GROUP_MAX).await == 0 {
                    return;
                }
            } else {
                while drained.len() < GROUP_MAX
                    && room > 0
                    && let Ok(waiting) = self.receiver.try_recv()
                {
                    drained.push(waiting);
                }
            }
            let group;
            (group, carried) = one_of_each_intent(drained);
            commit(&*self.store, group).await;
        }
    }
}

/// An intent sent twice at once goes into two groups, so that the second sees the first.
fn one_of_each_intent(drained: Vec<Waiting>) -> (Vec<Waiting>, Vec<Waiting>) {
    let mut seen = BTreeSet::new();
    drained.into_iter().partition(|waiting| seen.insert(waiting.intent.intent_id.clone()))
}

async fn commit(store: &dyn Store, group: Vec<Waiting>) {
    let (intents, answers): (Vec<_>, Vec<_>) =
        group.into_iter().map(|waiting| (waiting.intent, waiting.answer)).unzip();
    let results = match store.submit(&intents).await {
        Ok(results) if results.len() == intents.len() => results.into_iter().map(Ok).collect(),
        Ok(results) => {
            tracing::error!(
                given = intents.len(),
                answered = results.len(),
                "the store answered another number of submits"
            );
            vec![Err(SubmitFailure::Unavailable); intents.len()]
        }
        Err(StoreError::Unavailable(cause)) => {
            tracing::warn!(cause, count = intents.len(), "the database did not answer a group of submits");
            vec![Err(SubmitFailure::Unavailable); intents.len()]
        }
        Err(error) if intents.len() == 1 => vec![Err(failure(&intents[0], error))],
        Err(error) => {
            tracing::warn!(%error, count = intents.len(), "a group of submits was refused, trying one by one");
            one_by_one(store, &intents).await
        }
    };
    for (answer, result) in answers.into_iter().zip(results) {
        // A caller that gave up reads the outcome by sending again.
        drop(answer.send(result));
    }
}

async fn one_by_one(store: &dyn Store, intents: &[NewIntent]) -> Vec<Result<SubmitResult, SubmitFailure>> {
    let mut results = Vec::with_capacity(intents.len());
    for intent in intents {
        let result = store.submit(std::slice::from_ref(intent)).await;
        results.push(match result.map(|results| results.into_iter().next()) {
            Ok(Some(result)) => Ok(result),
            Ok(None) => Err(SubmitFailure::Unavailable),
            Err(error) => Err(failure(intent, error)),
        });
    }
    results
}

fn failure(intent: &NewIntent, error: StoreError) -> SubmitFailure {
    match error {
        StoreError::Unavailable(cause) => {
            tracing::warn!(intent_id = %intent.intent_id, cause, "the database did not answer a submit");
            SubmitFailure::Unavailable
        }
        error => {
            tracing::error!(intent_id = %intent.intent_id, %error, "the database refused a placeholder");
            SubmitFailure::Refused
        }
    }
}
