//! Pages of intents, and sums over all of them.
//!
//! Left out: an index for each filter. A page walks the intents from new to old until it is full, so a rare filter reads many; who
//! has an id asks `find`.

use super::connect::store_error;
use super::rows::{self, IntentRow};
use super::statement::array;
use crate::store::StoreError;
use crate::store::read::{AccountBalance, Backlog, IntentFilter, IntentPage, StateCount};
use jobs::ids::IntentId;
use jobs::refund::intent::{Intent, MACHINE_VERSION};
use sqlx::SqliteConnection;

/// Newest first, after the row the cursor names.
const INTENTS_PAGE_SELECT: &str = "
    SELECT * FROM refund_intents
    WHERE (?1 IS NULL OR (created_at, intent_id) < (?1, ?2))
      AND (?3 IS NULL OR state IN (SELECT value FROM json_each(?3)))
      AND (?4 IS NULL OR psp = ?4)
      AND (?5 IS NULL OR payment_id = ?5)
      AND (?6 IS NULL OR merchant_reference = ?6)
      AND (?7 IS NULL OR created_at >= ?7)
      AND (?8 IS NULL OR created_at < ?8)
    ORDER BY created_at DESC, intent_id DESC LIMIT ?9";

/// A page of intents, and where the next one starts.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    filter: IntentFilter,
    cursor: Option<String>,
    limit: usize,
) -> Result<IntentPage, StoreError> {
    let (after_at, after_id) = cursor.as_deref().map(read_cursor).transpose()?.unzip();
    let states = match filter.states.as_slice() {
        [] => None,
        states => Some(array(states)?),
    };
    let one_more = limit.saturating_add(1);
    let found: Vec<IntentRow> = sqlx::query_as(INTENTS_PAGE_SELECT)
        .bind(after_at)
        .bind(after_id)
        .bind(states)
        .bind(filter.psp)
        .bind(filter.payment_id.map(|id| id.to_string()))
        .bind(filter.merchant_reference)
        .bind(filter.created_from.map(|at| at.timestamp_micros()))
        .bind(filter.created_before.map(|at| at.timestamp_micros()))
        .bind(i64::try_from(one_more).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let mut intents: Vec<Intent> = rows::all(found)?;
    let more = intents.len() > limit;
    intents.truncate(limit);
    let next_cursor = intents.last().filter(|_| more).map(write_cursor);
    Ok(IntentPage { intents, next_cursor })
}

/// Where a page ended: the last row's place in the order.
fn write_cursor(last: &Intent) -> String {
    format!("{}.{}", last.created_at.timestamp_micros(), last.intent_id)
}

fn read_cursor(text: &str) -> Result<(i64, String), StoreError> {
    let read = || {
        let (micros, id) = text.split_once('.')?;
        Some((micros.parse().ok()?, IntentId::new(id).ok()?.to_string()))
    };
    read().ok_or_else(|| StoreError::Refused(format!("{text:?} is no cursor")))
}

/// Sums in two halves, because the engine's own sum fails once it leaves 64 bits: each half holds two thousand million rows.
const BALANCES_SELECT: &str = "
    SELECT account, currency, sum(debit >> 32), sum(debit & 4294967295), sum(credit >> 32), sum(credit & 4294967295) FROM (
        SELECT debit_account AS account, currency, amount_minor AS debit, 0 AS credit FROM ledger_transfers
        UNION ALL
        SELECT credit_account, currency, 0, amount_minor FROM ledger_transfers)
    GROUP BY account, currency ORDER BY account, currency";

/// Sums per account; one that leaves 64 bits stands at their end.
pub(super) async fn balances(connection: &mut SqliteConnection) -> Result<Vec<AccountBalance>, StoreError> {
    let found: Vec<(String, String, i64, i64, i64, i64)> =
        sqlx::query_as(BALANCES_SELECT).fetch_all(connection).await.map_err(store_error)?;
    let balance =
        |(account, currency, debit_high, debit_low, credit_high, credit_low): (String, String, i64, i64, i64, i64)| {
            Ok(AccountBalance {
                account,
                currency: rows::money(0, &currency)?.currency,
                debit_minor: whole(debit_high, debit_low),
                credit_minor: whole(credit_high, credit_low),
            })
        };
    found.into_iter().map(balance).collect()
}

fn whole(high: i64, low: i64) -> i64 {
    let sum = (i128::from(high) << 32) + i128::from(low);
    i64::try_from(sum).unwrap_or(i64::MAX)
}

const STATES_SELECT: &str =
    "SELECT state, psp, count(*), min(created_at) FROM refund_intents GROUP BY state, psp ORDER BY state, psp";

const MACHINE_VERSION_UNKNOWN_SELECT: &str = "SELECT count(*) FROM refund_intents WHERE machine_version <> ?1";

const SILENT_SELECT: &str = "
    SELECT intent_id FROM refund_intents
    WHERE next_action_at IS NULL AND state IN ('recorded', 'sending', 'unknown', 'processing')
    ORDER BY created_at, intent_id LIMIT 1";

/// How much waits, and since when.
pub(super) async fn backlog(connection: &mut SqliteConnection) -> Result<Backlog, StoreError> {
    let found: Vec<(String, String, i64, Option<i64>)> =
        sqlx::query_as(STATES_SELECT).fetch_all(&mut *connection).await.map_err(store_error)?;
    let count = |(state, psp, count, oldest): (String, String, i64, Option<i64>)| {
        let oldest_at = oldest.map(|at| rows::time("created_at", at)).transpose()?;
        Ok(StateCount { state: rows::state(&state)?, psp, count, oldest_at })
    };
    let mut states = found.into_iter().map(count).collect::<Result<Vec<_>, StoreError>>()?;
    states.sort_by(|a, b| (a.state, &a.psp).cmp(&(b.state, &b.psp)));
    let unknown_machine_version = sqlx::query_scalar(MACHINE_VERSION_UNKNOWN_SELECT)
        .bind(MACHINE_VERSION)
        .fetch_one(&mut *connection)
        .await
        .map_err(store_error)?;
    let silent: Option<String> =
        sqlx::query_scalar(SILENT_SELECT).fetch_optional(connection).await.map_err(store_error)?;
    Ok(Backlog { states, unknown_machine_version, without_next_action: silent.map(IntentId::from_stored) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(i64, &str)>) {
        let read = read_cursor(text).ok();
        assert_eq!(read.as_ref().map(|(at, id)| (*at, id.as_str())), expected, "{text}");
    }

    #[test]
    fn a_cursor_reads_back_and_anything_else_is_refused() {
        check("1700000000000000.r-1.2", Some((1_700_000_000_000_000, "r-1.2")));
        check("", None);
        check("17", None);
        check("x.r-1", None);
        check("17.", None);
    }

    #[test]
    fn halves_make_the_whole_to_the_last_digit() {
        for sum in [0_i64, 1, 4_294_967_295, 4_294_967_296, 9_007_199_254_740_993, i64::MAX] {
            assert_eq!(whole(sum >> 32, sum & 0xffff_ffff), sum);
        }
        assert_eq!(whole(i64::MAX, 0), i64::MAX);
    }
}
