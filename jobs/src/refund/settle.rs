//! What one call's outcome does to its intent: step 4 of a hold, and the late answers the inbox brings.
//!
//! The outcome settles its own attempt; the intent's state follows from all attempts together ([`Facts`]). Found means exactly one
//! refund with our reference, amount and currency. A rejection ends an intent only when no other create is open.

use super::capabilities::Capabilities;
use super::decision::{Decision, FoundBreak};
use super::facts::Facts;
use super::intent::{Attempt, AttemptKind, Intent, NextAction};
use super::outcome::{Outcome, PspRefund, Rejection, RejectionClass};
use super::resend::{self, NoResend, Now};
use super::state::{Event, PspStatus, State};
use chrono::{DateTime, Utc};

/// What the rules look at when an outcome arrives.
#[derive(Debug, Clone, Copy)]
pub struct Settling<'a> {
    pub intent: &'a Intent,
    pub attempt: &'a Attempt,
    pub outcome: &'a Outcome,
    pub facts: &'a Facts<'a>,
    pub capabilities: &'a Capabilities,
    pub now: Now,
}

/// What the intent becomes with this outcome. `so_far` is the intent as earlier rows of the same transaction left it.
#[must_use]
pub fn settle(settling: Settling<'_>, mut so_far: Decision) -> Decision {
    match settling.outcome {
        Outcome::Accepted { refund } => evidence(settling, &mut so_far, std::slice::from_ref(refund)),
        Outcome::Found { refunds } => evidence(settling, &mut so_far, refunds),
        Outcome::Rejected { rejection } => rejected(settling, &mut so_far, rejection),
        Outcome::NotExecuted { retry_after_ms, .. } => not_executed(settling, &mut so_far, *retry_after_ms),
        Outcome::Absent => absent(settling, &mut so_far),
        Outcome::Unknown { reason } => open(settling, &mut so_far, reason),
    }
    so_far
}

/// An event the current state does not know changes nothing but is never lost: it becomes a break.
fn take(decision: &mut Decision, event: Event) -> bool {
    match decision.take(event) {
        Ok(()) => true,
        Err(illegal) => {
            decision.breaks.push(FoundBreak { class: "status", detail: illegal.to_string() });
            false
        }
    }
}

fn evidence(settling: Settling<'_>, decision: &mut Decision, refunds: &[PspRefund]) {
    let intent = settling.intent;
    let ours = match refunds {
        [only] => only,
        several => {
            let names = several.iter().map(|refund| refund.psp_refund_ref.as_str()).collect::<Vec<_>>().join(", ");
            let detail = format!("the provider shows {} refunds with our reference: {names}", several.len());
            let known = several.iter().find(|refund| decision.psp_refund_ref.as_ref() == Some(&refund.psp_refund_ref));
            decision.breaks.push(FoundBreak { class: "duplicate_at_psp", detail: detail.clone() });
            match known {
                Some(known) if decision.state == State::Succeeded => known,
                _ => return decision.park(format!("several_found: {detail}")),
            }
        }
    };
    if ours.amount != intent.amount {
        let detail = format!(
            "asked for {} {}, the provider shows {} {} as {}",
            intent.amount.minor, intent.amount.currency, ours.amount.minor, ours.amount.currency, ours.psp_refund_ref
        );
        let class = if ours.amount.currency == intent.amount.currency { "amount" } else { "currency" };
        decision.psp_refund_ref.get_or_insert_with(|| ours.psp_refund_ref.clone());
        decision.breaks.push(FoundBreak { class, detail: detail.clone() });
        return decision.park(format!("other_{class}: {detail}"));
    }
    if let Some(known) = decision.psp_refund_ref.clone()
        && known != ours.psp_refund_ref
        && decision.state == State::Succeeded
    {
        let detail = format!("posted for {known}, the provider now shows {}", ours.psp_refund_ref);
        decision.breaks.push(FoundBreak { class: "duplicate_at_psp", detail });
        return decision.plan_nothing();
    }
    let (before, rung) = (decision.state, decision.rung);
    if !take(decision, Event::Evidence(ours.status)) {
        return decision.plan_nothing();
    }
    if matches!(before, State::Failed | State::Canceled) && before != decision.state {
        let detail = format!("was {before}, the provider shows {} as {}", ours.psp_refund_ref, decision.state);
        decision.breaks.push(FoundBreak { class: "status", detail });
    }
    decision.psp_refund_ref = Some(ours.psp_refund_ref.clone());
    match ours.status {
        PspStatus::Processing if decision.state == State::Processing => {
            decision.state_reason = Some(ours.reason.clone().unwrap_or_else(|| "processing".to_owned()));
            decision.rung = if before == State::Processing { rung } else { 0 };
            decision.climb(settling.capabilities, settling.now.database, None);
        }
        PspStatus::Failed | PspStatus::Canceled => {
            decision.state_reason = Some(ours.reason.clone().unwrap_or_else(|| "refused by the provider".to_owned()));
        }
        PspStatus::Processing | PspStatus::Succeeded => {}
    }
}

fn rejected(settling: Settling<'_>, decision: &mut Decision, rejection: &Rejection) {
    match rejection.class {
        RejectionClass::KeyReused => {
            decision.park(format!("key_reused: {}: {}", rejection.code, rejection.message));
        }
        // It may be our own refund that used the payment up: look.
        RejectionClass::AlreadyRefunded => open(settling, decision, &rejection.code),
        RejectionClass::Final if settling.facts.other_create_open(settling.attempt) => {
            open(settling, decision, &rejection.code)
        }
        RejectionClass::Final
            if !rejection.stored_under_key && settling.facts.other_create_ever_open(settling.attempt) =>
        {
            open(settling, decision, &rejection.code);
        }
        RejectionClass::Final => refuse(decision, rejection),
    }
}

fn refuse(decision: &mut Decision, rejection: &Rejection) {
    if take(decision, Event::RefusedForGood) {
        decision.state_reason = Some(format!("{}: {}", rejection.code, rejection.message));
    }
}

fn not_executed(settling: Settling<'_>, decision: &mut Decision, retry_after_ms: Option<u64>) {
    let in_a_row = settling.facts.not_executed_in_a_row();
    let database_now = settling.now.database;
    let is_create = settling.attempt.kind == AttemptKind::Create;
    if is_create {
        let event = if settling.facts.nothing_executed() { Event::NothingExecuted } else { Event::OutcomeOpen };
        if !take(decision, event) {
            return;
        }
    }
    match decision.state {
        State::Recorded if is_create => decision.back_off(NextAction::Create, database_now, in_a_row, retry_after_ms),
        state if state.is_final() && is_create => {}
        State::NeedsReview if is_create => {}
        _ => decision.back_off(NextAction::Lookup, database_now, in_a_row, retry_after_ms),
    }
}

/// The call's fate is open, or its reading was not complete.
fn open(settling: Settling<'_>, decision: &mut Decision, reason: &str) {
    let was_parked = decision.state == State::NeedsReview;
    if !take(decision, Event::OutcomeOpen) {
        return;
    }
    match decision.state {
        // A lookup on a person's wish brought nothing: still parked, for the same reason.
        _ if was_parked => decision.plan_nothing(),
        state if state.is_final() && settling.attempt.kind == AttemptKind::Create => {}
        State::Processing if settling.attempt.kind == AttemptKind::Create => {}
        state => {
            if matches!(state, State::Recorded | State::Unknown) {
                decision.state_reason = Some(reason.to_owned());
            }
            wait_for_proof(settling, decision);
        }
    }
}

fn wait_for_proof(settling: Settling<'_>, decision: &mut Decision) {
    if super::facts::can_look_up(settling.intent, settling.capabilities) {
        return decision.climb(settling.capabilities, settling.now.database, settling.facts.absent_until());
    }
    let at = settling.facts.absent_until().map_or(settling.now.database, |until| until.max(settling.now.database));
    decision.plan_at(NextAction::Create, at);
}

/// A complete reading did not show our refund.
fn absent(settling: Settling<'_>, decision: &mut Decision) {
    let database_now = settling.now.database;
    match decision.state {
        // Looked up because the database was restored to an earlier time: nothing there, so the create may start.
        State::Recorded => decision.plan_at(NextAction::Create, database_now),
        State::Unknown | State::Sending => absent_while_unknown(settling, decision),
        State::Processing => decision.climb(settling.capabilities, database_now, None),
        State::Succeeded => {
            decision.breaks.push(FoundBreak {
                class: "missing_at_psp",
                detail: "posted, but the provider does not show it".to_owned(),
            });
            decision.plan_nothing();
        }
        State::Failed | State::Canceled | State::Reversed | State::NeedsReview => decision.plan_nothing(),
    }
}

fn absent_while_unknown(settling: Settling<'_>, decision: &mut Decision) {
    let Settling { facts, capabilities, now, intent, .. } = settling;
    if decision.state == State::Sending && !take(decision, Event::OutcomeOpen) {
        return;
    }
    let Some(proof) = facts.absence_proof() else {
        decision.state_reason = Some("not shown yet; too early to prove absence".to_owned());
        return decision.climb(capabilities, now.database, facts.absent_until());
    };
    if let Some((attempt, rejection)) = facts.last_rejection() {
        return absent_after_rejection(settling, decision, attempt, rejection, proof.started_at);
    }
    match resend::grounds(intent, facts, capabilities, now) {
        Ok(grounds) => {
            decision.state_reason = Some(format!("resend: {grounds}"));
            decision.plan_at(NextAction::Create, now.database);
        }
        Err(NoResend::NotAbsent) => decision.climb(capabilities, now.database, facts.absent_until()),
        Err(why) => decision.park(format!("absent_no_resend: {why}")),
    }
}

fn absent_after_rejection(
    settling: Settling<'_>,
    decision: &mut Decision,
    attempt: &Attempt,
    rejection: &Rejection,
    proof_started_at: DateTime<Utc>,
) {
    let facts = settling.facts;
    if rejection.class == RejectionClass::AlreadyRefunded
        || rejection.stored_under_key
        || !facts.other_create_ever_open(attempt)
    {
        return refuse(decision, rejection);
    }
    // The refusal is not kept under the key, so an earlier create could still execute while the key lives.
    match facts.key_expires_at() {
        Some(expires_at) if proof_started_at < expires_at => {
            decision.state_reason =
                Some(format!("{}: waits until the key can not be honoured any more", rejection.code));
            decision.plan_at(NextAction::Lookup, expires_at);
        }
        _ => refuse(decision, rejection),
    }
}
