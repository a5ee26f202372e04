//! Sums for gauges and for finance. What waits is counted from partial indexes of open work; finished intents are many and wait for
//! nothing, so they are not counted.

use super::call::Calls;
use super::failure::Failure;
use super::rows;
use crate::store::StoreError;
use crate::store::read::{AccountBalance, Backlog, StateCount};
use jobs::ids::IntentId;
use jobs::refund::intent::MACHINE_VERSION;
use sqlx::postgres::PgConnection;
use sqlx::{Row, query};

const STATES_COUNT: &str = "
    SELECT state, psp, count(*), min(created_at) FROM refund_intents WHERE next_action_at IS NOT NULL GROUP BY state, psp
    UNION ALL
    SELECT state, psp, count(*), min(created_at) FROM refund_intents
     WHERE state = 'needs_review' AND next_action_at IS NULL GROUP BY state, psp
    ORDER BY 1, 2";

const MACHINE_UNKNOWN_COUNT: &str = "
    SELECT count(*) FROM refund_intents WHERE next_action_at IS NOT NULL AND machine_version <> $1";

const INTENT_SILENT: &str = "
    SELECT intent_id FROM refund_intents
    WHERE next_action_at IS NULL AND state IN ('recorded', 'sending', 'unknown', 'processing')
    ORDER BY created_at LIMIT 1";

const BALANCES: &str = "
    SELECT account, currency, sum(debit)::bigint, sum(credit)::bigint FROM (
        SELECT debit_account AS account, currency, amount_minor AS debit, 0 AS credit FROM ledger_transfers
        UNION ALL
        SELECT credit_account, currency, 0, amount_minor FROM ledger_transfers) AS sides
    GROUP BY account, currency ORDER BY account, currency";

pub(super) async fn backlog(calls: &Calls) -> Result<Backlog, StoreError> {
    calls.snapshot("count the backlog", |connection| Box::pin(backlog_once(connection))).await
}

async fn backlog_once(connection: &mut PgConnection) -> Result<Backlog, Failure> {
    let mut states = Vec::new();
    for row in &query(STATES_COUNT).fetch_all(&mut *connection).await? {
        states.push(StateCount {
            state: rows::state(row.try_get(0)?)?,
            psp: row.try_get(1)?,
            count: row.try_get(2)?,
            oldest_at: row.try_get(3)?,
        });
    }
    let unknown = query(MACHINE_UNKNOWN_COUNT).bind(MACHINE_VERSION).fetch_one(&mut *connection).await?;
    let silent = query(INTENT_SILENT).fetch_optional(connection).await?;
    Ok(Backlog {
        states,
        unknown_machine_version: unknown.try_get(0)?,
        without_next_action: silent.map(|row| row.try_get(0)).transpose()?.map(IntentId::from_stored),
    })
}

pub(super) async fn balances(calls: &Calls) -> Result<Vec<AccountBalance>, StoreError> {
    calls.read("sum the accounts", |connection| Box::pin(balances_once(connection))).await
}

async fn balances_once(connection: &mut PgConnection) -> Result<Vec<AccountBalance>, Failure> {
    let mut balances = Vec::new();
    for row in &query(BALANCES).fetch_all(connection).await? {
        balances.push(AccountBalance {
            account: row.try_get(0)?,
            currency: rows::currency(row.try_get(1)?)?,
            debit_minor: row.try_get(2)?,
            credit_minor: row.try_get(3)?,
        });
    }
    Ok(balances)
}
