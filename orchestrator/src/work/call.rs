//! Step 3: the call, with no transaction open.
//!
//! Trust is checked right before the first byte. A call in flight runs to its own deadline even when trust is lost meanwhile: its
//! answer is evidence. What was provably not sent says so, so that the next holder need not wait.

use super::commit::Answered;
use super::evidence::Evidence;
use super::hold::Held;
use super::{Shared, write};
use crate::psp::{CreateCall, LookupCall};
use jobs::ids::AttemptId;
use jobs::refund::decision::Decision;
use jobs::refund::facts::Facts;
use jobs::refund::intent::{Attempt, AttemptKind, Intent, IntentFile};
use jobs::refund::outcome::Outcome;
use jobs::refund::plan::{CallPlan, Caller};
use jobs::refund::settle::{Settling, settle};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// An installed call.
#[derive(Debug)]
pub(super) struct InCall {
    held: Held,
    /// The row as step 2 left it.
    installed: Intent,
    /// Attempts before this one.
    earlier: Vec<Attempt>,
    attempt: Attempt,
}

impl InCall {
    pub(super) fn new(held: Held, plan: CallPlan, caller: Caller, file: IntentFile, timeline: i64) -> Self {
        let attempt = plan.attempt(&file.intent, caller);
        let installed = plan.installed(&file.intent, caller, timeline);
        Self { held, installed, earlier: file.attempts, attempt }
    }
}

/// Starts each call as a task of its own; slots bound how many there are.
pub(super) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<InCall>) {
    let mut calls = JoinSet::new();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            received = queue.recv_many(&mut batch, shared.options.batch) => {
                if received == 0 {
                    return;
                }
                for in_call in batch.drain(..) {
                    calls.spawn(call(shared.clone(), Box::new(in_call)));
                }
            }
            Some(ended) = calls.join_next(), if !calls.is_empty() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a call's task died; the next holder looks its refund up");
                }
            }
        }
    }
}

async fn call(shared: Arc<Shared>, mut in_call: Box<InCall>) {
    if !in_call.held.lease.is_good() {
        let outcome = Outcome::NotExecuted {
            reason: "not sent: the lease was no longer trusted".to_owned(),
            retry_after_ms: None,
        };
        return to_evidence(&shared, *in_call, outcome, 0).await;
    }
    let started = shared.clock.boottime();
    let outcome = {
        let _open = in_call.held.link.open_calls.enter();
        ask(&shared, &in_call).await
    };
    in_call.held.slot = None;
    let duration = shared.clock.boottime().saturating_since(started);
    let link = &in_call.held.link;
    shared.metrics.psp_called(&link.psp, in_call.attempt.kind.as_str(), outcome.as_str(), duration);
    let duration_ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    if in_call.held.lease.is_good() {
        settle_and_commit(&shared, *in_call, outcome, duration_ms).await;
    } else {
        to_evidence(&shared, *in_call, outcome, duration_ms).await;
    }
}

async fn ask(shared: &Shared, in_call: &InCall) -> Outcome {
    let InCall { held, installed: intent, attempt, .. } = in_call;
    let Ok(time_limit) = (attempt.deadline - shared.conditions.now().database).to_std() else {
        return Outcome::NotExecuted {
            reason: "not sent: its deadline passed while it waited".to_owned(),
            retry_after_ms: None,
        };
    };
    let provider = &held.link.provider;
    let answer = async {
        match attempt.kind {
            AttemptKind::Create => provider.create(CreateCall { intent, time_limit }).await,
            AttemptKind::Lookup => provider.lookup(LookupCall { intent, time_limit }).await,
        }
    };
    match tokio::time::timeout(time_limit + Duration::from_millis(100), answer).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::Unknown { reason: "no answer before the deadline".to_owned() },
    }
}

async fn settle_and_commit(shared: &Shared, in_call: InCall, outcome: Outcome, duration_ms: i64) {
    let InCall { held, installed, earlier, attempt } = in_call;
    let decision = {
        let learned = [(&attempt, &outcome)];
        let facts = Facts::new(&earlier, &learned);
        let settling = Settling {
            intent: &installed,
            attempt: &attempt,
            outcome: &outcome,
            facts: &facts,
            capabilities: &held.link.capabilities,
            now: shared.conditions.now(),
        };
        settle(settling, Decision::unchanged(&installed))
    };
    let change = write::settled(&installed, &attempt, outcome, duration_ms, decision);
    if shared.to_commit.send(Answered { held, change, before: installed.state }).await.is_err() {
        tracing::debug!("the commit loop is gone; the next holder looks this refund up");
    }
}

async fn to_evidence(shared: &Shared, in_call: InCall, outcome: Outcome, duration_ms: i64) {
    let attempt_id: AttemptId = in_call.attempt.attempt_id;
    let evidence = Evidence { held: in_call.held, attempt_id, outcome, duration_ms };
    if shared.to_evidence.send(evidence).await.is_err() {
        tracing::error!(%attempt_id, "an answer that came too late could not be kept; the next holder looks up");
    }
}
