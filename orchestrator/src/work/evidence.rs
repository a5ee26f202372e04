//! Answers that step 4 could not write: appended to the intent's inbox, where the next holder reads them before it looks up.
//!
//! The source id is the attempt's, so a repeat is one row. Kept until the database takes it or the node is told to stop and its drain limit
//! ends; after that the refund is looked up, which tells the same.

use super::hold::Held;
use super::{Shared, write};
use crate::store::change::{InboxResult, NewInboxRow};
use jobs::ids::AttemptId;
use jobs::refund::intent::InboxMessage;
use jobs::refund::outcome::Outcome;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// An answer without a home.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) held: Held,
    pub(super) attempt_id: AttemptId,
    pub(super) outcome: Outcome,
    pub(super) duration_ms: i64,
}

pub(super) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<Evidence>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, shared.options.batch).await > 0 {
        let (holds, rows): (Vec<Held>, Vec<NewInboxRow>) = std::mem::take(&mut batch).into_iter().map(row).unzip();
        append(&shared, &rows).await;
        write::let_go(&shared, holds).await;
        // Whoever holds these intents next should not wait for the poll.
        shared.wake.nudge();
    }
}

fn row(evidence: Evidence) -> (Held, NewInboxRow) {
    let Evidence { held, attempt_id, outcome, duration_ms } = evidence;
    let row = NewInboxRow {
        intent_id: held.intent_id.clone(),
        source_id: attempt_id.to_string(),
        message: InboxMessage::LateAnswer { attempt_id, outcome, duration_ms },
    };
    (held, row)
}

async fn append(shared: &Shared, rows: &[NewInboxRow]) {
    let mut backoff = Duration::from_millis(100);
    loop {
        match shared.store.append_inbox(rows).await {
            Ok(results) => {
                for (row, result) in rows.iter().zip(results) {
                    match result {
                        InboxResult::Stored { .. } => {
                            tracing::info!(intent_id = %row.intent_id, attempt_id = row.source_id, "a late answer is kept")
                        }
                        InboxResult::Duplicate => {}
                        InboxResult::UnknownIntent => {
                            tracing::error!(intent_id = %row.intent_id, "a late answer belongs to no refund")
                        }
                    }
                }
                return;
            }
            Err(error) => {
                tracing::warn!(count = rows.len(), error = %crate::report(&error), "late answers cannot be kept yet; trying again");
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(Duration::from_secs(5));
            }
        }
    }
}
