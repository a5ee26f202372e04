//! Everything on record about one intent, read at one moment.

use super::call::Calls;
use super::failure::Failure;
use super::rows::{self, INBOX_COLUMNS, INTENT_COLUMNS, attempt_columns, inbox_columns, intent_columns};
use super::{pauses, payments};
use crate::store::StoreError;
use crate::store::read::{Break, InboxEntry, InboxReading, Story, Transfer};
use jobs::ids::{IntentId, Token};
use jobs::money::Money;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Row, query};
use std::sync::Arc;

const INTENT: &str =
    concat!("SELECT ", intent_columns!(), ", clock_timestamp() FROM refund_intents i WHERE i.intent_id = $1");

const ATTEMPTS: &str = concat!(
    "SELECT ",
    attempt_columns!(),
    " FROM refund_attempts a LEFT JOIN refund_outcomes o ON o.attempt_id = a.attempt_id
    WHERE a.intent_id = $1 ORDER BY a.installed_version"
);

const INBOX: &str = concat!(
    "SELECT ",
    inbox_columns!(),
    ", r.refused_because, r.version, r.applied_at
    FROM intent_inbox n LEFT JOIN intent_inbox_readings r ON r.inbox_id = n.inbox_id
    WHERE n.intent_id = $1 ORDER BY n.inbox_id"
);

const TRANSFERS: &str = "
    SELECT transfer_id, kind, debit_account, credit_account, amount_minor, currency, fence_epoch, fence_counter, created_at
    FROM ledger_transfers WHERE intent_id = $1 ORDER BY transfer_id";

const BREAKS: &str = "SELECT break_id, class, detail, created_at FROM breaks WHERE intent_id = $1 ORDER BY break_id";

pub(super) async fn story(calls: &Calls, id: &IntentId) -> Result<Option<Story>, StoreError> {
    let id = Arc::new(id.clone());
    calls
        .snapshot("read a story", move |connection| {
            let id = Arc::clone(&id);
            Box::pin(async move { story_once(connection, &id).await })
        })
        .await
}

async fn story_once(connection: &mut PgConnection, id: &IntentId) -> Result<Option<Story>, Failure> {
    let Some(row) = query(INTENT).bind(id.as_str()).fetch_optional(&mut *connection).await? else { return Ok(None) };
    let intent = rows::intent(&row)?;
    let payment = payments::read_one(connection, &intent.payment_id).await?;
    let payment = payment.ok_or_else(|| rows::unreadable("payment of an intent", intent.payment_id.as_str()))?;
    Ok(Some(Story {
        now: row.try_get(INTENT_COLUMNS)?,
        payment,
        attempts: read_all(connection, ATTEMPTS, id, rows::attempt).await?,
        inbox: read_all(connection, INBOX, id, inbox_entry).await?,
        transfers: read_all(connection, TRANSFERS, id, transfer).await?,
        breaks: read_all(connection, BREAKS, id, found_break).await?,
        psp_pause: pauses::read_one(connection, &intent.psp).await?,
        intent,
    }))
}

async fn read_all<T>(
    connection: &mut PgConnection,
    sql: &'static str,
    id: &IntentId,
    read: fn(&PgRow) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    query(sql).bind(id.as_str()).fetch_all(connection).await?.iter().map(read).collect()
}

fn inbox_entry(row: &PgRow) -> Result<InboxEntry, Failure> {
    let applied = match row.try_get(INBOX_COLUMNS + 1)? {
        Some(version) => Some(InboxReading {
            refused_because: row.try_get(INBOX_COLUMNS)?,
            version,
            applied_at: row.try_get(INBOX_COLUMNS + 2)?,
        }),
        None => None,
    };
    Ok(InboxEntry { row: rows::inbox_row(row)?, applied })
}

fn transfer(row: &PgRow) -> Result<Transfer, Failure> {
    Ok(Transfer {
        transfer_id: row.try_get(0)?,
        kind: row.try_get(1)?,
        debit_account: row.try_get(2)?,
        credit_account: row.try_get(3)?,
        amount: Money { minor: row.try_get(4)?, currency: rows::currency(row.try_get(5)?)? },
        token: Token { epoch: row.try_get(6)?, counter: row.try_get(7)? },
        created_at: row.try_get(8)?,
    })
}

fn found_break(row: &PgRow) -> Result<Break, Failure> {
    Ok(Break {
        break_id: row.try_get(0)?,
        class: row.try_get(1)?,
        detail: row.try_get(2)?,
        created_at: row.try_get(3)?,
    })
}
