//! What a row refuses whoever sends it: the triggers and constraints of `refund_intents` in code, under the same names.
//!
//! Nothing outside this file decides whether an intent's row may be replaced.

use super::tables::IntentRow;
use crate::store::StoreError;
use crate::store::read::Transfer;
use jobs::ids::Token;
use jobs::refund::intent::{Intent, NextAction};
use jobs::refund::state::State;

/// Longest idempotency key a provider takes.
const KEY_LENGTH_MAX: usize = 45;

pub(super) fn refuse_if(violated: bool, rule: &str, why: &str) -> Result<(), StoreError> {
    if violated {
        return Err(StoreError::Refused(format!("{rule}: {why}")));
    }
    Ok(())
}

/// An intent's first row.
pub(super) fn check_insert(new: &IntentRow) -> Result<(), StoreError> {
    let intent = &new.intent;
    let born = intent.state == State::Recorded
        && intent.version == 1
        && intent.fence == Token::NONE
        && new.stamp == Token::NONE
        && new.stamp_version == 1
        && intent.open_attempt.is_none();
    refuse_if(!born, "refund_intents_born_recorded", "an intent is born recorded, at version 1, with no fence")?;
    check_columns(intent)
}

/// An intent's row replaced by another.
pub(super) fn check_update(old: &IntentRow, new: &IntentRow) -> Result<(), StoreError> {
    check_identity(&old.intent, &new.intent)?;
    refuse_if(
        old.intent.version.checked_add(1) != Some(new.intent.version),
        "refund_intents_version",
        "every change raises the version by one",
    )?;
    refuse_if(
        new.stamp_version != new.intent.version,
        "refund_intents_no_token",
        "no token: a change carries the stamp of its holder",
    )?;
    refuse_if(
        new.stamp < old.intent.fence || new.stamp.epoch <= 0,
        "refund_intents_stale_token",
        "stale token: a later holder has written",
    )?;
    refuse_if(
        new.intent.fence != new.stamp,
        "refund_intents_fence_is_stamp",
        "the fence is the token that was accepted",
    )?;
    check_columns(&new.intent)
}

fn check_identity(old: &Intent, new: &Intent) -> Result<(), StoreError> {
    let same = old.intent_id == new.intent_id
        && old.payment_id == new.payment_id
        && old.psp == new.psp
        && old.psp_account == new.psp_account
        && old.psp_payment_ref == new.psp_payment_ref
        && old.amount == new.amount
        && old.idempotency_key == new.idempotency_key
        && old.create_body == new.create_body
        && old.created_at == new.created_at
        && old.merchant_reference == new.merchant_reference
        && old.refund_reason == new.refund_reason;
    refuse_if(!same, "refund_intents_identity", "identity, amount, currency, key and body never change")
}

/// The table's CHECK constraints.
fn check_columns(intent: &Intent) -> Result<(), StoreError> {
    refuse_if(intent.amount.minor <= 0, "refund_intents_amount_positive", "an amount is positive")?;
    let key_length = intent.idempotency_key.chars().count();
    refuse_if(!(1..=KEY_LENGTH_MAX).contains(&key_length), "refund_intents_key_length", "1 to 45 characters")?;
    refuse_if(intent.rung < 0, "refund_intents_rung_not_negative", "a rung is not negative")?;
    let planned = intent.next_action != NextAction::None;
    let silent = planned != intent.next_action_at.is_some()
        || (!planned && !intent.state.is_final() && intent.state != State::NeedsReview);
    refuse_if(silent, "refund_intents_never_silent", "not final and not parked means a next action with a time")?;
    refuse_if(
        intent.state == State::NeedsReview && intent.state_reason.is_none(),
        "refund_intents_parked_with_reason",
        "parked means with a reason",
    )?;
    refuse_if(
        intent.holder_session.is_some() != intent.open_attempt.is_some(),
        "refund_intents_holder_with_attempt",
        "a holder is named while a call is open",
    )?;
    refuse_if(
        intent.state == State::Sending && intent.open_attempt.is_none(),
        "refund_intents_sending_is_open",
        "sending means an open call",
    )
}

/// A posting beside the row it was made with.
pub(super) fn check_transfer(intent: &Intent, posted: &[Transfer], kind: &str) -> Result<(), StoreError> {
    let state_fits = match kind {
        "post" => matches!(intent.state, State::Succeeded | State::Reversed),
        "reverse" => intent.state == State::Reversed,
        _ => false,
    };
    refuse_if(!state_fits, "ledger_transfers_fence", "the transfer does not fit its intent's state")?;
    refuse_if(
        posted.iter().any(|transfer| transfer.kind == kind),
        "ledger_transfers_one_per_intent_and_kind",
        "an intent has one transfer of a kind",
    )
}
