//! Rows as the engine stores them, and how they read as the types of `jobs`.
//!
//! Times are integer microseconds, ids of attempts and sessions hyphenated text, documents JSON text. A row this code does not
//! understand is an error that names the column, never a default.

use crate::store::StoreError;
use crate::store::read::{Payment, PspPause};
use chrono::{DateTime, Utc};
use jobs::ids::{AttemptId, IntentId, PaymentId, SessionId, Token};
use jobs::money::Money;
use jobs::refund::intent::{Attempt, AttemptKind, InboxRow, Intent, NextAction, RecordedOutcome};
use jobs::refund::state::State;
use sqlx::FromRow;
use uuid::Uuid;

fn unreadable(column: &str, value: impl std::fmt::Display) -> StoreError {
    StoreError::Unreadable(format!("{column} is {value}"))
}

pub(super) fn time(column: &str, micros: i64) -> Result<DateTime<Utc>, StoreError> {
    DateTime::from_timestamp_micros(micros).ok_or_else(|| unreadable(column, micros))
}

fn optional_time(column: &str, micros: Option<i64>) -> Result<Option<DateTime<Utc>>, StoreError> {
    micros.map(|micros| time(column, micros)).transpose()
}

fn uuid(column: &str, text: &str) -> Result<Uuid, StoreError> {
    Uuid::parse_str(text).map_err(|_| unreadable(column, text))
}

pub(super) fn attempt_id(text: &str) -> Result<AttemptId, StoreError> {
    uuid("attempt_id", text).map(AttemptId)
}

pub(super) fn state(text: &str) -> Result<State, StoreError> {
    State::from_stored(text).ok_or_else(|| unreadable("state", text))
}

pub(super) fn money(minor: i64, currency: &str) -> Result<Money, StoreError> {
    Ok(Money { minor, currency: currency.parse().map_err(|_| unreadable("currency", currency))? })
}

#[derive(Debug, FromRow)]
pub(super) struct PaymentRow {
    payment_id: String,
    psp: String,
    psp_account: String,
    psp_payment_ref: String,
    merchant_reference: Option<String>,
    currency: String,
    captured_minor: i64,
    charged_back_minor: i64,
    refunded_minor: i64,
    reserved_minor: i64,
    created_at: i64,
}

impl TryFrom<PaymentRow> for Payment {
    type Error = StoreError;
    fn try_from(row: PaymentRow) -> Result<Self, StoreError> {
        Ok(Self {
            payment_id: PaymentId::from_stored(row.payment_id),
            psp: row.psp,
            psp_account: row.psp_account,
            psp_payment_ref: row.psp_payment_ref,
            merchant_reference: row.merchant_reference,
            captured: money(row.captured_minor, &row.currency)?,
            charged_back_minor: row.charged_back_minor,
            refunded_minor: row.refunded_minor,
            reserved_minor: row.reserved_minor,
            created_at: time("created_at", row.created_at)?,
        })
    }
}

#[derive(Debug, FromRow)]
pub(super) struct IntentRow {
    intent_id: String,
    payment_id: String,
    psp: String,
    psp_account: String,
    psp_payment_ref: String,
    merchant_reference: Option<String>,
    refund_reason: Option<String>,
    currency: String,
    amount_minor: i64,
    idempotency_key: String,
    create_body: Vec<u8>,
    machine_version: i32,
    state: String,
    state_reason: Option<String>,
    psp_refund_ref: Option<String>,
    version: i64,
    fence_epoch: i64,
    fence_counter: i64,
    holder_session: Option<String>,
    open_attempt: Option<String>,
    next_action: String,
    next_action_at: Option<i64>,
    rung: i32,
    timeline: i64,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<IntentRow> for Intent {
    type Error = StoreError;
    fn try_from(row: IntentRow) -> Result<Self, StoreError> {
        let holder_session = row.holder_session.map(|text| uuid("holder_session", &text).map(SessionId)).transpose()?;
        let open_attempt = row.open_attempt.as_deref().map(attempt_id).transpose()?;
        Ok(Self {
            intent_id: IntentId::from_stored(row.intent_id),
            payment_id: PaymentId::from_stored(row.payment_id),
            psp: row.psp,
            psp_account: row.psp_account,
            psp_payment_ref: row.psp_payment_ref,
            merchant_reference: row.merchant_reference,
            refund_reason: row.refund_reason,
            amount: money(row.amount_minor, &row.currency)?,
            idempotency_key: row.idempotency_key,
            create_body: row.create_body,
            machine_version: row.machine_version,
            state: state(&row.state)?,
            state_reason: row.state_reason,
            psp_refund_ref: row.psp_refund_ref,
            version: row.version,
            fence: Token { epoch: row.fence_epoch, counter: row.fence_counter },
            holder_session,
            open_attempt,
            next_action: NextAction::from_stored(&row.next_action)
                .ok_or_else(|| unreadable("next_action", &row.next_action))?,
            next_action_at: optional_time("next_action_at", row.next_action_at)?,
            rung: row.rung,
            timeline: row.timeline,
            created_at: time("created_at", row.created_at)?,
            updated_at: time("updated_at", row.updated_at)?,
        })
    }
}

/// An attempt joined with its outcome, if it has one.
#[derive(Debug, FromRow)]
pub(super) struct AttemptRow {
    attempt_id: String,
    intent_id: String,
    kind: String,
    token_epoch: i64,
    token_counter: i64,
    session_id: String,
    installed_version: i64,
    started_at: i64,
    deadline: i64,
    key_expires_at: Option<i64>,
    absent_until: Option<i64>,
    grounds: Option<String>,
    detail: Option<String>,
    duration_ms: Option<i64>,
    late: Option<bool>,
    recorded_at: Option<i64>,
}

impl TryFrom<AttemptRow> for Attempt {
    type Error = StoreError;
    fn try_from(row: AttemptRow) -> Result<Self, StoreError> {
        let outcome = match (row.detail, row.duration_ms, row.late, row.recorded_at) {
            (Some(detail), Some(duration_ms), Some(late), Some(recorded_at)) => Some(RecordedOutcome {
                outcome: serde_json::from_str(&detail).map_err(|error| unreadable("outcome detail", error))?,
                duration_ms,
                late,
                recorded_at: time("recorded_at", recorded_at)?,
            }),
            _ => None,
        };
        Ok(Self {
            attempt_id: attempt_id(&row.attempt_id)?,
            intent_id: IntentId::from_stored(row.intent_id),
            kind: AttemptKind::from_stored(&row.kind).ok_or_else(|| unreadable("kind", &row.kind))?,
            token: Token { epoch: row.token_epoch, counter: row.token_counter },
            session: SessionId(uuid("session_id", &row.session_id)?),
            installed_version: row.installed_version,
            started_at: time("started_at", row.started_at)?,
            deadline: time("deadline", row.deadline)?,
            key_expires_at: optional_time("key_expires_at", row.key_expires_at)?,
            absent_until: optional_time("absent_until", row.absent_until)?,
            grounds: row.grounds,
            outcome,
        })
    }
}

#[derive(Debug, FromRow)]
pub(super) struct MessageRow {
    inbox_id: i64,
    intent_id: String,
    source_id: String,
    message: String,
    received_at: i64,
}

impl TryFrom<MessageRow> for InboxRow {
    type Error = StoreError;
    fn try_from(row: MessageRow) -> Result<Self, StoreError> {
        Ok(Self {
            inbox_id: row.inbox_id,
            intent_id: IntentId::from_stored(row.intent_id),
            source_id: row.source_id,
            message: serde_json::from_str(&row.message).map_err(|error| unreadable("inbox message", error))?,
            received_at: time("received_at", row.received_at)?,
        })
    }
}

#[derive(Debug, FromRow)]
pub(super) struct PauseRow {
    psp: String,
    actor: String,
    reason: String,
    paused_at: i64,
}

impl TryFrom<PauseRow> for PspPause {
    type Error = StoreError;
    fn try_from(row: PauseRow) -> Result<Self, StoreError> {
        Ok(Self { psp: row.psp, actor: row.actor, reason: row.reason, paused_at: time("paused_at", row.paused_at)? })
    }
}

/// Reads all rows, or tells which one does not read.
pub(super) fn all<R, T: TryFrom<R, Error = StoreError>>(rows: Vec<R>) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(T::try_from).collect()
}
