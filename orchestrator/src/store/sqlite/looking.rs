//! What people ask for: one payment, one intent's whole story, any id they have.

use super::connect::store_error;
use super::payments::payments_by_id;
use super::rows::{self, PauseRow};
use super::statement::{array, now_micros};
use super::work::{attempts, intents};
use crate::store::StoreError;
use crate::store::read::{Break, InboxEntry, InboxReading, Payment, PspPause, Story, Transfer};
use jobs::ids::{IntentId, PaymentId, Token};
use jobs::refund::intent::InboxRow;
use sqlx::{FromRow, SqliteConnection};

pub(super) async fn payment(connection: &mut SqliteConnection, id: PaymentId) -> Result<Option<Payment>, StoreError> {
    let mut found = payments_by_id(connection, [&id].into_iter()).await?;
    Ok(found.remove(&id))
}

const INTENTS_FIND: &str = "
    SELECT intent_id FROM refund_intents WHERE intent_id IN (
        SELECT intent_id FROM refund_intents WHERE intent_id = ?1
        UNION SELECT intent_id FROM refund_intents WHERE psp_refund_ref = ?1
        UNION SELECT intent_id FROM refund_intents WHERE payment_id = ?1
        UNION SELECT intent_id FROM refund_intents WHERE merchant_reference = ?1
        UNION SELECT i.intent_id FROM payments AS p CROSS JOIN refund_intents AS i ON i.payment_id = p.payment_id
              WHERE p.psp_payment_ref = ?1
        UNION SELECT i.intent_id FROM payments AS p CROSS JOIN refund_intents AS i ON i.payment_id = p.payment_id
              WHERE p.merchant_reference = ?1)
    ORDER BY created_at DESC, intent_id DESC LIMIT ?2";

pub(super) async fn find(
    connection: &mut SqliteConnection,
    any_id: String,
    limit: usize,
) -> Result<Vec<IntentId>, StoreError> {
    let found: Vec<String> = sqlx::query_scalar(INTENTS_FIND)
        .bind(any_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    Ok(found.into_iter().map(IntentId::from_stored).collect())
}

/// Everything on record about one intent, all of one moment.
pub(super) async fn story(connection: &mut SqliteConnection, id: IntentId) -> Result<Option<Story>, StoreError> {
    let now = rows::time("now", now_micros(connection).await?)?;
    let asked = array(&[&id])?;
    let Some(intent) = intents(connection, &asked).await?.pop() else { return Ok(None) };
    let payment = payment(connection, intent.payment_id.clone()).await?.ok_or_else(|| {
        StoreError::Unreadable(format!("{id} names the payment {}, which is not there", intent.payment_id))
    })?;
    let attempts = attempts(connection, &asked).await?;
    let inbox = inbox(connection, &id).await?;
    let transfers = transfers(connection, &id).await?;
    let breaks = breaks(connection, &id).await?;
    let psp_pause = pauses(connection, Some(intent.psp.clone())).await?.pop();
    Ok(Some(Story { now, intent, payment, attempts, inbox, transfers, breaks, psp_pause }))
}

#[derive(Debug, FromRow)]
struct EntryRow {
    #[sqlx(flatten)]
    message: rows::MessageRow,
    refused_because: Option<String>,
    version: Option<i64>,
    applied_at: Option<i64>,
}

const INBOX_SELECT: &str = "
    SELECT m.*, r.refused_because, r.version, r.applied_at
    FROM intent_inbox AS m LEFT JOIN intent_inbox_readings AS r ON r.inbox_id = m.inbox_id
    WHERE m.intent_id = ?1 ORDER BY m.inbox_id";

async fn inbox(connection: &mut SqliteConnection, id: &IntentId) -> Result<Vec<InboxEntry>, StoreError> {
    let found: Vec<EntryRow> =
        sqlx::query_as(INBOX_SELECT).bind(id.as_str()).fetch_all(connection).await.map_err(store_error)?;
    let entry = |row: EntryRow| {
        let applied = match (row.version, row.applied_at) {
            (Some(version), Some(at)) => {
                let applied_at = rows::time("applied_at", at)?;
                Some(InboxReading { refused_because: row.refused_because, version, applied_at })
            }
            _ => None,
        };
        Ok(InboxEntry { row: InboxRow::try_from(row.message)?, applied })
    };
    found.into_iter().map(entry).collect()
}

#[derive(Debug, FromRow)]
struct TransferRow {
    transfer_id: i64,
    kind: String,
    debit_account: String,
    credit_account: String,
    amount_minor: i64,
    currency: String,
    fence_epoch: i64,
    fence_counter: i64,
    created_at: i64,
}

const TRANSFERS_SELECT: &str = "SELECT * FROM ledger_transfers WHERE intent_id = ?1 ORDER BY transfer_id";

async fn transfers(connection: &mut SqliteConnection, id: &IntentId) -> Result<Vec<Transfer>, StoreError> {
    let found: Vec<TransferRow> =
        sqlx::query_as(TRANSFERS_SELECT).bind(id.as_str()).fetch_all(connection).await.map_err(store_error)?;
    let transfer = |row: TransferRow| {
        Ok(Transfer {
            transfer_id: row.transfer_id,
            kind: row.kind,
            debit_account: row.debit_account,
            credit_account: row.credit_account,
            amount: rows::money(row.amount_minor, &row.currency)?,
            token: Token { epoch: row.fence_epoch, counter: row.fence_counter },
            created_at: rows::time("created_at", row.created_at)?,
        })
    };
    found.into_iter().map(transfer).collect()
}

const BREAKS_SELECT: &str =
    "SELECT break_id, class, detail, created_at FROM breaks WHERE intent_id = ?1 ORDER BY break_id";

async fn breaks(connection: &mut SqliteConnection, id: &IntentId) -> Result<Vec<Break>, StoreError> {
    let found: Vec<(i64, String, String, i64)> =
        sqlx::query_as(BREAKS_SELECT).bind(id.as_str()).fetch_all(connection).await.map_err(store_error)?;
    let read = |(break_id, class, detail, at)| {
        Ok(Break { break_id, class, detail, created_at: rows::time("created_at", at)? })
    };
    found.into_iter().map(read).collect()
}

const PAUSES_SELECT: &str = "SELECT * FROM psp_pauses WHERE ?1 IS NULL OR psp = ?1 ORDER BY psp";

/// Paused providers, or the one asked for if it is paused.
pub(super) async fn pauses(
    connection: &mut SqliteConnection,
    psp: Option<String>,
) -> Result<Vec<PspPause>, StoreError> {
    let found: Vec<PauseRow> =
        sqlx::query_as(PAUSES_SELECT).bind(psp).fetch_all(connection).await.map_err(store_error)?;
    rows::all(found)
}
