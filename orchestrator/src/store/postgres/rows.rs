//! Rows to types, by position: the column lists below and the readers beside them belong together.

use super::failure::Failure;
use crate::store::StoreError;
use crate::store::read::Payment;
use jobs::ids::{AttemptId, IntentId, PaymentId, SessionId, Token};
use jobs::money::{Currency, Money};
use jobs::refund::intent::{Attempt, AttemptKind, InboxMessage, InboxRow, Intent, NextAction, RecordedOutcome};
use jobs::refund::outcome::Outcome;
use jobs::refund::state::State;
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;

/// Columns of `refund_intents i` that [`intent`] reads.
macro_rules! intent_columns {
    () => {
        "i.intent_id, i.payment_id, i.psp, i.psp_account, i.psp_payment_ref, i.merchant_reference, i.refund_reason, \
         i.amount_minor, i.currency, i.idempotency_key, i.create_body, i.machine_version, i.state, i.state_reason, \
         i.psp_refund_ref, i.version, i.fence_epoch, i.fence_counter, i.holder_session, i.open_attempt, i.next_action, \
         i.next_action_at, i.rung, i.timeline, i.created_at, i.updated_at"
    };
}
pub(super) use intent_columns;

/// How many columns that is: further ones of the same row follow from here.
pub(super) const INTENT_COLUMNS: usize = 26;

/// Columns of `refund_attempts a` with `refund_outcomes o` that [`attempt`] reads.
macro_rules! attempt_columns {
    () => {
        "a.attempt_id, a.intent_id, a.kind, a.token_epoch, a.token_counter, a.session_id, a.installed_version, a.started_at, \
         a.deadline, a.key_expires_at, a.absent_until, a.grounds, o.detail, o.duration_ms, o.late, o.recorded_at"
    };
}
pub(super) use attempt_columns;

/// Columns of `intent_inbox n` that [`inbox_row`] reads.
macro_rules! inbox_columns {
    () => {
        "n.inbox_id, n.intent_id, n.source_id, n.message, n.received_at"
    };
}
pub(super) use inbox_columns;

/// How many columns that is.
pub(super) const INBOX_COLUMNS: usize = 5;

/// Columns of `payments p` that [`payment`] reads.
macro_rules! payment_columns {
    () => {
        "p.payment_id, p.psp, p.psp_account, p.psp_payment_ref, p.merchant_reference, p.captured_minor, p.currency, \
         p.charged_back_minor, p.refunded_minor, p.reserved_minor, p.created_at"
    };
}
pub(super) use payment_columns;

pub(super) fn unreadable(what: &str, found: &str) -> StoreError {
    StoreError::Unreadable(format!("{what} {found:?}"))
}

pub(super) fn currency(text: &str) -> Result<Currency, StoreError> {
    text.parse().map_err(|_| unreadable("currency", text))
}

pub(super) fn state(text: &str) -> Result<State, StoreError> {
    State::from_stored(text).ok_or_else(|| unreadable("state", text))
}

pub(super) fn intent(row: &PgRow) -> Result<Intent, Failure> {
    let next_action: &str = row.try_get(20)?;
    Ok(Intent {
        intent_id: IntentId::from_stored(row.try_get(0)?),
        payment_id: PaymentId::from_stored(row.try_get(1)?),
        psp: row.try_get(2)?,
        psp_account: row.try_get(3)?,
        psp_payment_ref: row.try_get(4)?,
        merchant_reference: row.try_get(5)?,
        refund_reason: row.try_get(6)?,
        amount: Money { minor: row.try_get(7)?, currency: currency(row.try_get(8)?)? },
        idempotency_key: row.try_get(9)?,
        create_body: row.try_get(10)?,
        machine_version: row.try_get(11)?,
        state: state(row.try_get(12)?)?,
        state_reason: row.try_get(13)?,
        psp_refund_ref: row.try_get(14)?,
        version: row.try_get(15)?,
        fence: Token { epoch: row.try_get(16)?, counter: row.try_get(17)? },
        holder_session: row.try_get::<Option<_>, _>(18)?.map(SessionId),
        open_attempt: row.try_get::<Option<_>, _>(19)?.map(AttemptId),
        next_action: NextAction::from_stored(next_action).ok_or_else(|| unreadable("next action", next_action))?,
        next_action_at: row.try_get(21)?,
        rung: row.try_get(22)?,
        timeline: row.try_get(23)?,
        created_at: row.try_get(24)?,
        updated_at: row.try_get(25)?,
    })
}

pub(super) fn attempt(row: &PgRow) -> Result<Attempt, Failure> {
    let kind: &str = row.try_get(2)?;
    let outcome = match row.try_get::<Option<Json<Outcome>>, _>(12)? {
        Some(Json(outcome)) => Some(RecordedOutcome {
            outcome,
            duration_ms: row.try_get(13)?,
            late: row.try_get(14)?,
            recorded_at: row.try_get(15)?,
        }),
        None => None,
    };
    Ok(Attempt {
        attempt_id: AttemptId(row.try_get(0)?),
        intent_id: IntentId::from_stored(row.try_get(1)?),
        kind: AttemptKind::from_stored(kind).ok_or_else(|| unreadable("attempt kind", kind))?,
        token: Token { epoch: row.try_get(3)?, counter: row.try_get(4)? },
        session: SessionId(row.try_get(5)?),
        installed_version: row.try_get(6)?,
        started_at: row.try_get(7)?,
        deadline: row.try_get(8)?,
        key_expires_at: row.try_get(9)?,
        absent_until: row.try_get(10)?,
        grounds: row.try_get(11)?,
        outcome,
    })
}

pub(super) fn inbox_row(row: &PgRow) -> Result<InboxRow, Failure> {
    let Json(message): Json<InboxMessage> = row.try_get(3)?;
    Ok(InboxRow {
        inbox_id: row.try_get(0)?,
        intent_id: IntentId::from_stored(row.try_get(1)?),
        source_id: row.try_get(2)?,
        message,
        received_at: row.try_get(4)?,
    })
}

pub(super) fn payment(row: &PgRow) -> Result<Payment, Failure> {
    Ok(Payment {
        payment_id: PaymentId::from_stored(row.try_get(0)?),
        psp: row.try_get(1)?,
        psp_account: row.try_get(2)?,
        psp_payment_ref: row.try_get(3)?,
        merchant_reference: row.try_get(4)?,
        captured: Money { minor: row.try_get(5)?, currency: currency(row.try_get(6)?)? },
        charged_back_minor: row.try_get(7)?,
        refunded_minor: row.try_get(8)?,
        reserved_minor: row.try_get(9)?,
        created_at: row.try_get(10)?,
    })
}
