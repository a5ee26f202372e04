//! What one call's outcome does to its intent: step 4 of a hold, and the late answers the inbox brings.
//!
//! The outcome settles its own attempt; the intent's state follows from all attempts together ([`Facts`]). Found means exactly one
//! refund with our reference, amount and currency. A rejection ends an intent only when no other create is open.

use super::capabilities::Capabilities;
use super::decision::{Decision, FoundBreak};
use super::facts::{Facts, can_look_up};
use super::intent::{Attempt, AttemptKind, Intent, NextAction};
use super::outcome::{Outcome, PspRefund, Rejection, RejectionClass};
use super::resend::{self, NoResend, Now};
use super::state::{Event, PspStatus, State, next};
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
    if is_stale_reading(settling, so_far.state) {
        return so_far;
    }
    // The open call's own time limit is no plan.
    let is_open = settling.intent.open_attempt == Some(settling.attempt.attempt_id);
    if is_open && (so_far.state.is_final() || so_far.state == State::NeedsReview) {
        so_far.plan_nothing();
    }
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

/// A reading that came late and showed nothing: the intent went on without it. It still counts as an absence of what is open.
fn is_stale_reading(settling: Settling<'_>, state: State) -> bool {
    let Settling { intent, attempt, outcome, .. } = settling;
    let tells = match outcome {
        Outcome::Found { .. } => true,
        Outcome::Absent => matches!(state, State::Sending | State::Unknown),
        _ => false,
    };
    attempt.kind == AttemptKind::Lookup && intent.open_attempt != Some(attempt.attempt_id) && !tells
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

/// What was found contradicts what was asked: a break, and a person. Found again on a replay, it is the same break.
fn contradicted(decision: &mut Decision, class: &'static str, code: &str, detail: String) {
    let reason = format!("{code}: {detail}");
    if decision.state == State::NeedsReview && decision.state_reason.as_deref() == Some(&reason) {
        return decision.plan_nothing();
    }
    decision.breaks.push(FoundBreak { class, detail });
    decision.park(reason);
}

fn evidence(settling: Settling<'_>, decision: &mut Decision, refunds: &[PspRefund]) {
    let intent = settling.intent;
    let ours = match refunds {
        [only] => only,
        several => {
            let names = several.iter().map(|refund| refund.psp_refund_ref.as_str()).collect::<Vec<_>>().join(", ");
            let detail = format!("the provider shows {} refunds with our reference: {names}", several.len());
            let known = several.iter().find(|refund| decision.psp_refund_ref.as_ref() == Some(&refund.psp_refund_ref));
            match known {
                Some(known) if decision.state == State::Succeeded => {
                    decision.breaks.push(FoundBreak { class: "duplicate_at_psp", detail });
                    known
                }
                _ => return contradicted(decision, "duplicate_at_psp", "several_found", detail),
            }
        }
    };
    if ours.amount != intent.amount {
        let detail =
            format!("asked for {}, the provider shows {} as {}", intent.amount, ours.amount, ours.psp_refund_ref);
        let class = if ours.amount.currency == intent.amount.currency { "amount" } else { "currency" };
        decision.psp_refund_ref.get_or_insert_with(|| ours.psp_refund_ref.clone());
        let code = if class == "amount" { "other_amount" } else { "other_currency" };
        return contradicted(decision, class, code, detail);
    }
    if is_another(decision, ours) {
        let known = decision.psp_refund_ref.as_deref().unwrap_or_default();
        let detail = format!("ours is {known}, the provider now shows {}", ours.psp_refund_ref);
        return contradicted(decision, "duplicate_at_psp", "several_found", detail);
    }
    if settling.facts.is_overtaken(settling.attempt) {
        return older_view(settling, decision, ours);
    }
    let (before, rung) = (decision.state, decision.rung);
    if !take(decision, Event::Evidence(ours.status)) {
        return;
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

/// A second refund of ours at the provider. One that failed or was canceled there may be followed by another, never the reverse.
fn is_another(decision: &Decision, shown: &PspRefund) -> bool {
    let is_other = decision.psp_refund_ref.as_ref().is_some_and(|known| *known != shown.psp_refund_ref);
    is_other && !matches!(decision.state, State::Failed | State::Canceled)
}

/// A later call has shown this refund already. What this one says of its status is no news, and where the two differ the
/// provider is asked: only what it shows now may set a state back.
fn older_view(settling: Settling<'_>, decision: &mut Decision, shown: &PspRefund) {
    if next(decision.state, Event::Evidence(shown.status)).is_ok_and(|step| step.state == decision.state) {
        return;
    }
    if can_look_up(settling.intent, settling.capabilities) {
        return decision.look_now(settling.now.database);
    }
    let detail =
        format!("is {}, an older answer showed {} as {:?}", decision.state, shown.psp_refund_ref, shown.status);
    decision.breaks.push(FoundBreak { class: "status", detail });
}

fn rejected(settling: Settling<'_>, decision: &mut Decision, rejection: &Rejection) {
    let no_lookup_at = (!can_look_up(settling.intent, settling.capabilities)).then_some(settling.now.database);
    match rejection.class {
        // Only a create can be refused in a way that tells something about the refund.
        _ if settling.attempt.kind == AttemptKind::Lookup => open(settling, decision, &rejection.code),
        RejectionClass::KeyReused => {
            let detail = format!("key_reused: {}: {}", rejection.code, rejection.message);
            if decision.state.is_final() {
                decision.breaks.push(FoundBreak { class: "status", detail: detail.clone() });
            }
            decision.park(detail);
        }
        // It may be our own refund that used the payment up: look.
        RejectionClass::AlreadyRefunded => open(settling, decision, &rejection.code),
        RejectionClass::Final if settling.facts.other_create_open(settling.attempt, no_lookup_at) => {
            open(settling, decision, &rejection.code)
        }
        RejectionClass::Final
            if !rejection.stored_under_key && settling.facts.other_create_ever_open(settling.attempt) =>
        {
            open(settling, decision, &rejection.code);
        }
        RejectionClass::Final => refuse(settling, decision, rejection),
    }
}

fn refuse(settling: Settling<'_>, decision: &mut Decision, rejection: &Rejection) {
    let before = decision.state;
    // Parked because of what the provider showed: a refusal does not make that go away.
    if before == State::NeedsReview && settling.facts.was_shown() {
        let detail = format!("a refund of ours was shown, yet a create was refused: {}", rejection.code);
        return decision.breaks.push(FoundBreak { class: "status", detail });
    }
    if take(decision, Event::RefusedForGood) && before != decision.state {
        decision.state_reason = Some(format!("{}: {}", rejection.code, rejection.message));
    }
}

fn not_executed(settling: Settling<'_>, decision: &mut Decision, retry_after_ms: Option<u64>) {
    let in_a_row = settling.facts.not_executed_in_a_row(settling.attempt.kind);
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
        state if is_create && (state.is_final() || matches!(state, State::Processing | State::NeedsReview)) => {}
        _ => decision.back_off(NextAction::Lookup, database_now, in_a_row, retry_after_ms),
    }
}

/// The call's fate is open, or its reading was not complete.
fn open(settling: Settling<'_>, decision: &mut Decision, reason: &str) {
    let is_create = settling.attempt.kind == AttemptKind::Create;
    if !take(decision, Event::OutcomeOpen) {
        return;
    }
    match decision.state {
        state if is_create && (state.is_final() || matches!(state, State::Processing | State::NeedsReview)) => {}
        // A lookup on a person's wish brought nothing: still parked, for the same reason.
        State::NeedsReview => {}
        state => {
            if matches!(state, State::Recorded | State::Unknown) {
                decision.state_reason = Some(reason.to_owned());
            }
            wait_for_proof(settling, decision);
        }
    }
}

fn wait_for_proof(settling: Settling<'_>, decision: &mut Decision) {
    let Settling { facts, capabilities, now, .. } = settling;
    if can_look_up(settling.intent, capabilities) {
        return decision.climb(capabilities, now.database, facts.absent_until());
    }
    // Nobody to ask: the ladder paces the resends, one rung for each create that may have executed.
    let creates = facts.possible_create_count();
    match capabilities.unknown_ladder.get(creates.saturating_sub(1)) {
        Some(delay) => {
            let at = now.database + *delay;
            decision.plan_at(NextAction::Create, facts.given_up_at().map_or(at, |until| until.max(at)));
        }
        None => decision.park(format!("ladder_ended: {creates} creates without an answer, and no lookup to ask")),
    }
}

/// A complete reading did not show our refund.
fn absent(settling: Settling<'_>, decision: &mut Decision) {
    let Settling { attempt, facts, capabilities, .. } = settling;
    let database_now = settling.now.database;
    match decision.state {
        // Looked up because the database was restored to an earlier time: nothing there, so the create may start.
        State::Recorded => decision.plan_at(NextAction::Create, database_now),
        State::Unknown | State::Sending => absent_while_unknown(settling, decision),
        State::Processing => decision.climb(capabilities, database_now, None),
        State::Succeeded if facts.absent_until().is_some_and(|until| attempt.started_at < until) => {
            decision.climb(capabilities, database_now, facts.absent_until());
        }
        State::Succeeded => {
            decision.breaks.push(FoundBreak {
                class: "missing_at_psp",
                detail: "posted, but the provider does not show it".to_owned(),
            });
        }
        State::NeedsReview => absent_while_parked(settling, decision),
        State::Failed | State::Canceled | State::Reversed => {}
    }
}

/// A refusal on record and absence by the rule end a parked intent as they end an unknown one; anything less leaves it parked.
fn absent_while_parked(settling: Settling<'_>, decision: &mut Decision) {
    let facts = settling.facts;
    if let Some(proof) = facts.absence_proof()
        && let Some((attempt, rejection)) = facts.last_rejection()
        && rejection.class != RejectionClass::KeyReused
        && !facts.was_shown()
    {
        absent_after_rejection(settling, decision, attempt, rejection, proof.started_at);
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
        return refuse(settling, decision, rejection);
    }
    // The refusal is not kept under the key, so an earlier create could still execute while the key lives.
    match facts.key_expires_at() {
        Some(expires_at) if proof_started_at < expires_at => {
            decision.state_reason =
                Some(format!("{}: waits until the key can not be honoured any more", rejection.code));
            decision.plan_at(NextAction::Lookup, expires_at);
        }
        _ => refuse(settling, decision, rejection),
    }
}
