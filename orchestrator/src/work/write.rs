//! Plans and decisions as changes, the writing of a batch, and what follows a write.

use super::STEPS_PER_HOLD_MAX;
use super::Shared;
use super::advance;
use super::hold::Held;
use crate::lease::HeldLease;
use crate::store::StoreError;
use crate::store::change::{
    Change, FenceGuard, InboxApplied, NewAttempt, NewBreak, NewOutcome, TransferKind, WriteResult,
};
use jobs::ids::Token;
use jobs::refund::decision::Decision;
use jobs::refund::intent::{Attempt, Intent, NextAction};
use jobs::refund::outcome::Outcome;
use jobs::refund::plan::{CallPlan, Caller, WritePlan};
use jobs::refund::state::{Effect, State};

/// What became of a change in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Yes,
    No(WriteResult),
    /// No answer: it may have taken effect.
    Unknown,
    /// The database refused this very row.
    Failed,
}

/// Step 2: the attempt on disk before its first byte.
pub(super) fn install(intent: &Intent, caller: Caller, fence_guard: FenceGuard, plan: &CallPlan) -> Change {
    Change {
        intent_id: intent.intent_id.clone(),
        expected_version: intent.version,
        token: caller.token,
        fence_guard,
        expected_open_attempt: intent.open_attempt,
        state: plan.state,
        state_reason: plan.state_reason.clone(),
        psp_refund_ref: intent.psp_refund_ref.clone(),
        holder_session: Some(caller.session),
        open_attempt: Some(caller.attempt_id),
        next_action: NextAction::Lookup,
        next_action_at: Some(plan.next_action_at),
        rung: plan.rung,
        attempt: Some(NewAttempt {
            attempt_id: caller.attempt_id,
            kind: plan.kind,
            started_at: plan.started_at,
            deadline: plan.deadline,
            key_expires_at: plan.key_expires_at,
            absent_until: plan.absent_until,
            grounds: plan.grounds.clone(),
        }),
        outcomes: Vec::new(),
        transfer: None,
        breaks: Vec::new(),
        inbox_applied: Vec::new(),
    }
}

/// Steps 2 and 4 in one, for a plan that makes no call.
pub(super) fn change_without_call(
    intent: &Intent,
    lease: &HeldLease,
    fence_guard: FenceGuard,
    plan: WritePlan,
) -> Change {
    let mut change = decided(intent, lease.token(), fence_guard, plan.decision);
    change.outcomes = plan
        .late_outcomes
        .into_iter()
        .map(|late| NewOutcome {
            attempt_id: late.attempt_id,
            outcome: late.outcome,
            duration_ms: late.duration_ms,
            late: true,
        })
        .collect();
    change.inbox_applied = plan
        .readings
        .into_iter()
        .map(|reading| InboxApplied { inbox_id: reading.inbox_id, refused_because: reading.refused_because })
        .collect();
    change
}

/// Step 4: the outcome and what the intent becomes, against the row as step 2 left it.
pub(super) fn settled(
    installed: &Intent,
    attempt: &Attempt,
    outcome: Outcome,
    duration_ms: i64,
    decision: Decision,
) -> Change {
    let mut change = decided(installed, attempt.token, FenceGuard::Equal, decision);
    change.outcomes = vec![NewOutcome { attempt_id: attempt.attempt_id, outcome, duration_ms, late: false }];
    change
}

fn decided(intent: &Intent, token: Token, fence_guard: FenceGuard, decision: Decision) -> Change {
    Change {
        intent_id: intent.intent_id.clone(),
        expected_version: intent.version,
        token,
        fence_guard,
        expected_open_attempt: intent.open_attempt,
        state: decision.state,
        state_reason: decision.state_reason,
        psp_refund_ref: decision.psp_refund_ref,
        holder_session: None,
        open_attempt: None,
        next_action: decision.next_action,
        next_action_at: decision.next_action_at,
        rung: decision.rung,
        attempt: None,
        outcomes: Vec::new(),
        transfer: match decision.effect {
            Effect::None | Effect::Break => None,
            Effect::Post | Effect::PostAndBreak => Some(TransferKind::Post),
            Effect::Reverse => Some(TransferKind::Reverse),
        },
        breaks: decision
            .breaks
            .into_iter()
            .map(|found| NewBreak { class: found.class, detail: found.detail })
            .collect(),
        inbox_applied: Vec::new(),
    }
}

/// Writes a batch. When the database refuses it as a whole, each row is tried alone, so that one bad row does not hold up the rest.
pub(super) async fn apply(shared: &Shared, changes: &[Change]) -> Vec<Written> {
    if changes.is_empty() {
        return Vec::new();
    }
    match shared.store.apply(changes).await {
        Ok(results) => results.into_iter().map(from_result).collect(),
        Err(StoreError::Unavailable(reason)) => {
            tracing::warn!(count = changes.len(), reason, "a write was not answered");
            vec![Written::Unknown; changes.len()]
        }
        Err(error) => {
            tracing::error!(count = changes.len(), error = %crate::report(&error), "a batch was refused; trying its rows one by one");
            let mut written = Vec::with_capacity(changes.len());
            for change in changes {
                written.push(apply_alone(shared, change).await);
            }
            written
        }
    }
}

async fn apply_alone(shared: &Shared, change: &Change) -> Written {
    match shared.store.apply(std::slice::from_ref(change)).await {
        Ok(results) => results.into_iter().next().map_or(Written::Unknown, from_result),
        Err(StoreError::Unavailable(_)) => Written::Unknown,
        Err(error) => {
            let failures = shared.poison.failed(&change.intent_id, &error);
            tracing::error!(intent_id = %change.intent_id, failures, error = %crate::report(&error), "the database refuses this refund's write");
            Written::Failed
        }
    }
}

fn from_result(result: WriteResult) -> Written {
    match result {
        WriteResult::Written => Written::Yes,
        lost => Written::No(lost),
    }
}

/// A hold whose change was written.
#[derive(Debug)]
pub(super) struct Wrote {
    pub(super) held: Held,
    pub(super) change: Change,
    /// The state it was changed from.
    pub(super) before: State,
}

/// After a write: a further step of the same hold when one is due now or the inbox has news, else release.
pub(super) async fn after(shared: &Shared, wrote: Vec<Wrote>) {
    if wrote.is_empty() {
        return;
    }
    let now = shared.conditions.now().database;
    let mut further = Vec::new();
    let mut done = Vec::new();
    for Wrote { held, change, before } in wrote {
        if change.state == State::NeedsReview && before != State::NeedsReview {
            shared.metrics.refund_parked();
            let reason = change.state_reason.as_deref().unwrap_or("");
            tracing::warn!(intent_id = %change.intent_id, reason, "a refund is parked for a person");
        }
        let due = change.next_action_at.is_some_and(|at| at <= now)
            && (change.next_action == NextAction::Lookup || shared.conditions.creates_allowed(&held.link.psp));
        let may_go_on = held.steps < STEPS_PER_HOLD_MAX && !shared.conditions.is_stopping() && held.lease.is_good();
        match (may_go_on, due) {
            (true, true) => further.push(held),
            (true, false) => done.push((held, true)),
            (false, _) => done.push((held, false)),
        }
    }
    let ids: Vec<_> = done.iter().filter(|(_, may_go_on)| *may_go_on).map(|(held, _)| held.intent_id.clone()).collect();
    let unread = if ids.is_empty() { Vec::new() } else { shared.store.unread_among(&ids).await.unwrap_or_default() };
    let mut released = Vec::with_capacity(done.len());
    for (held, may_go_on) in done {
        if may_go_on && unread.contains(&held.intent_id) { further.push(held) } else { released.push(held) }
    }
    for held in further {
        advance::enqueue(shared, held).await;
    }
    let_go(shared, released).await;
}

/// Hands holds to the releaser.
pub(super) async fn let_go(shared: &Shared, holds: Vec<Held>) {
    for mut held in holds {
        held.slot = None;
        if shared.to_release.send(held).await.is_err() {
            tracing::debug!("the release loop is gone; the lease ends with its session");
            return;
        }
    }
}
