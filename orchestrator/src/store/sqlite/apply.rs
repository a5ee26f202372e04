//! The one write path of an intent: rows are read, judged and written under the file's write lock, so nothing moves in between.
//!
//! What won is written as one statement per table for the whole batch; what lost is told and writes nothing. A batch that names an
//! intent twice is cut there: the second change is judged on what the first one left, in the same transaction. If the engine refuses
//! any row, nothing of the batch is kept. Across a crash: all of it or none.

use super::connect::store_error;
use super::evidence;
use super::judge::{Standing, judge};
use super::rows;
use super::statement::{array, expect_rows, now_micros};
use crate::store::StoreError;
use crate::store::change::{Change, WriteResult};
use jobs::ids::{AttemptId, IntentId, SessionId, Token};
use jobs::refund::state::{CountsAs, State};
use serde::Serialize;
use sqlx::{FromRow, SqliteConnection};
use std::collections::{BTreeMap, BTreeSet};

/// A change that won, with the row as it was.
#[derive(Debug)]
pub(super) struct Winner<'a> {
    pub(super) change: &'a Change,
    pub(super) standing: Standing,
}

impl Winner<'_> {
    /// The version this change writes; a row at the last one can not move and is refused by the version trigger.
    pub(super) const fn version(&self) -> i64 {
        self.change.expected_version.saturating_add(1)
    }
}

const EPOCH_CURRENT_SELECT: &str = "SELECT max(epoch) FROM lease_epochs";

/// Writes what won and tells which lost and why.
pub(super) async fn apply(
    connection: &mut SqliteConnection,
    changes: Vec<Change>,
) -> Result<Vec<WriteResult>, StoreError> {
    let now = now_micros(connection).await?;
    let current_epoch: Option<i64> =
        sqlx::query_scalar(EPOCH_CURRENT_SELECT).fetch_one(&mut *connection).await.map_err(store_error)?;
    let mut results = Vec::with_capacity(changes.len());
    for round in rounds(&changes) {
        let mut standings = standings(connection, round).await?;
        let mut winners = Vec::new();
        for change in round {
            let standing = standings.remove(&change.intent_id);
            let result = judge(standing.as_ref(), change, current_epoch);
            if let (WriteResult::Written, Some(standing)) = (result, standing) {
                winners.push(Winner { change, standing });
            }
            results.push(result);
        }
        if !winners.is_empty() {
            write_intents(connection, now, &winners).await?;
            evidence::write(connection, now, &winners).await?;
            write_counters(connection, &winners).await?;
        }
    }
    Ok(results)
}

/// Cuts the batch so that no part names an intent twice.
fn rounds(changes: &[Change]) -> Vec<&[Change]> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut named: BTreeSet<&IntentId> = BTreeSet::new();
    for (index, change) in changes.iter().enumerate() {
        if !named.insert(&change.intent_id) {
            parts.push(&changes[start..index]);
            start = index;
            named = BTreeSet::from([&change.intent_id]);
        }
    }
    parts.push(&changes[start..]);
    parts
}

const STANDINGS_SELECT: &str = "
    SELECT intent_id, payment_id, amount_minor, state, version, fence_epoch, fence_counter, open_attempt
    FROM refund_intents WHERE intent_id IN (SELECT value FROM json_each(?1))";

const UNREAD_IDS_SELECT: &str =
    "SELECT intent_id, inbox_id FROM intent_inbox_unread WHERE intent_id IN (SELECT value FROM json_each(?1))";

#[derive(Debug, FromRow)]
struct StandingRow {
    intent_id: String,
    payment_id: String,
    amount_minor: i64,
    state: String,
    version: i64,
    fence_epoch: i64,
    fence_counter: i64,
    open_attempt: Option<String>,
}

async fn standings(
    connection: &mut SqliteConnection,
    changes: &[Change],
) -> Result<BTreeMap<IntentId, Standing>, StoreError> {
    let ids: Vec<&IntentId> = changes.iter().map(|change| &change.intent_id).collect();
    let ids = array(&ids)?;
    let found: Vec<StandingRow> =
        sqlx::query_as(STANDINGS_SELECT).bind(&ids).fetch_all(&mut *connection).await.map_err(store_error)?;
    let mut standings = BTreeMap::new();
    for row in found {
        let open_attempt = row.open_attempt.as_deref().map(rows::attempt_id).transpose()?;
        let standing = Standing {
            payment_id: row.payment_id,
            amount_minor: row.amount_minor,
            state: rows::state(&row.state)?,
            version: row.version,
            fence: Token { epoch: row.fence_epoch, counter: row.fence_counter },
            open_attempt,
            unread: BTreeSet::new(),
        };
        standings.insert(IntentId::from_stored(row.intent_id), standing);
    }
    if changes.iter().any(|change| !change.inbox_applied.is_empty()) {
        let unread: Vec<(String, i64)> =
            sqlx::query_as(UNREAD_IDS_SELECT).bind(&ids).fetch_all(connection).await.map_err(store_error)?;
        for (intent_id, inbox_id) in unread {
            if let Some(standing) = standings.get_mut(&IntentId::from_stored(intent_id)) {
                standing.unread.insert(inbox_id);
            }
        }
    }
    Ok(standings)
}

#[derive(Debug, Serialize)]
struct IntentUpdate<'a> {
    intent_id: &'a str,
    version: i64,
    epoch: i64,
    counter: i64,
    state: &'static str,
    state_reason: Option<&'a str>,
    psp_refund_ref: Option<&'a str>,
    holder_session: Option<SessionId>,
    open_attempt: Option<AttemptId>,
    next_action: &'static str,
    next_action_at: Option<i64>,
    rung: i32,
}

const INTENTS_UPDATE: &str = "
    UPDATE refund_intents SET
        state = c.value ->> 'state', state_reason = c.value ->> 'state_reason', psp_refund_ref = c.value ->> 'psp_refund_ref',
        version = c.value ->> 'version', fence_epoch = c.value ->> 'epoch', fence_counter = c.value ->> 'counter',
        stamp_epoch = c.value ->> 'epoch', stamp_counter = c.value ->> 'counter', stamp_version = c.value ->> 'version',
        holder_session = c.value ->> 'holder_session', open_attempt = c.value ->> 'open_attempt',
        next_action = c.value ->> 'next_action', next_action_at = c.value ->> 'next_action_at', rung = c.value ->> 'rung',
        timeline = 1, updated_at = ?2
    FROM json_each(?1) AS c
    WHERE refund_intents.intent_id = c.value ->> 'intent_id' AND refund_intents.version = c.value ->> 'version' - 1";

async fn write_intents(connection: &mut SqliteConnection, now: i64, winners: &[Winner<'_>]) -> Result<(), StoreError> {
    let updates: Vec<_> = winners.iter().map(intent_update).collect();
    let done =
        sqlx::query(INTENTS_UPDATE).bind(array(&updates)?).bind(now).execute(connection).await.map_err(store_error)?;
    expect_rows("intents updated", done.rows_affected(), updates.len())
}

fn intent_update<'a>(winner: &Winner<'a>) -> IntentUpdate<'a> {
    let change = winner.change;
    IntentUpdate {
        intent_id: change.intent_id.as_str(),
        version: winner.version(),
        epoch: change.token.epoch,
        counter: change.token.counter,
        state: change.state.as_str(),
        state_reason: change.state_reason.as_deref(),
        psp_refund_ref: change.psp_refund_ref.as_deref(),
        holder_session: change.holder_session,
        open_attempt: change.open_attempt,
        next_action: change.next_action.as_str(),
        next_action_at: change.next_action_at.map(|at| at.timestamp_micros()),
        rung: change.rung,
    }
}

/// By how much a payment's counters move.
#[derive(Debug, Default, Serialize)]
struct CounterDelta<'a> {
    payment_id: &'a str,
    reserved_minor: i64,
    refunded_minor: i64,
}

const PAYMENTS_MOVE_COUNTERS: &str = "
    UPDATE payments SET reserved_minor = reserved_minor + (d.value ->> 'reserved_minor'),
        refunded_minor = refunded_minor + (d.value ->> 'refunded_minor')
    FROM json_each(?1) AS d WHERE payments.payment_id = d.value ->> 'payment_id'";

async fn write_counters(connection: &mut SqliteConnection, winners: &[Winner<'_>]) -> Result<(), StoreError> {
    let deltas = counter_deltas(winners)?;
    if deltas.is_empty() {
        return Ok(());
    }
    let done =
        sqlx::query(PAYMENTS_MOVE_COUNTERS).bind(array(&deltas)?).execute(connection).await.map_err(store_error)?;
    expect_rows("payments updated", done.rows_affected(), deltas.len())
}

/// Counters follow from states: the old state's weight goes, the new one's comes, summed per payment.
fn counter_deltas<'a>(winners: &'a [Winner<'_>]) -> Result<Vec<CounterDelta<'a>>, StoreError> {
    let mut deltas: BTreeMap<&str, CounterDelta<'_>> = BTreeMap::new();
    for winner in winners {
        let (old, new) = (winner.standing.state, winner.change.state);
        if old.counts_as() == new.counts_as() {
            continue;
        }
        let payment_id = winner.standing.payment_id.as_str();
        let delta = deltas.entry(payment_id).or_insert(CounterDelta { payment_id, ..CounterDelta::default() });
        let amount = winner.standing.amount_minor;
        weigh(delta, old, amount.checked_neg()).and_then(|()| weigh(delta, new, Some(amount))).ok_or_else(|| {
            StoreError::Refused(format!("payments: the counters of {payment_id} would leave 64 bits"))
        })?;
    }
    Ok(deltas.into_values().filter(|delta| delta.reserved_minor != 0 || delta.refunded_minor != 0).collect())
}

fn weigh(delta: &mut CounterDelta<'_>, state: State, amount: Option<i64>) -> Option<()> {
    let counter = match state.counts_as() {
        CountsAs::Reserved => &mut delta.reserved_minor,
        CountsAs::Refunded => &mut delta.refunded_minor,
        CountsAs::Nothing => return Some(()),
    };
    *counter = counter.checked_add(amount?)?;
    Some(())
}
