//! What is written beside an intent's new state, in the same transaction: attempts, outcomes, transfers, breaks, inbox readings.

use super::apply::Winner;
use super::connect::store_error;
use super::statement::{array, document, expect_rows};
use crate::store::StoreError;
use crate::store::change::NewAttempt;
use jobs::ids::{AttemptId, SessionId};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::collections::BTreeSet;

/// Writes everything the winners brought, for intents that are already at their new version.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    now: i64,
    winners: &[Winner<'_>],
) -> Result<(), StoreError> {
    let attempts: Vec<_> = winners.iter().filter_map(attempt_insert).collect();
    insert(connection, now, "attempts inserted", ATTEMPTS_INSERT, &attempts).await?;
    write_outcomes(connection, now, winners).await?;
    let transfers: Vec<_> = winners.iter().filter_map(transfer_insert).collect();
    insert(connection, now, "transfers inserted", TRANSFERS_INSERT, &transfers).await?;
    let breaks: Vec<_> = winners.iter().flat_map(break_inserts).collect();
    insert(connection, now, "breaks inserted", BREAKS_INSERT, &breaks).await?;
    let readings: Vec<_> = winners.iter().flat_map(reading_inserts).collect();
    insert(connection, now, "readings inserted", READINGS_INSERT, &readings).await?;
    insert(connection, now, "unread rows deleted", UNREAD_DELETE, &readings).await
}

/// Runs one statement for all rows; `?1` is the rows, `?2` the time.
async fn insert<T: Serialize>(
    connection: &mut SqliteConnection,
    now: i64,
    what: &str,
    statement: &'static str,
    rows: &[T],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let done = sqlx::query(statement).bind(array(rows)?).bind(now).execute(connection).await.map_err(store_error)?;
    expect_rows(what, done.rows_affected(), rows.len())
}

#[derive(Debug, Serialize)]
struct AttemptInsert<'a> {
    attempt_id: AttemptId,
    intent_id: &'a str,
    kind: &'static str,
    epoch: i64,
    counter: i64,
    session_id: Option<SessionId>,
    version: i64,
    started_at: i64,
    deadline: i64,
    key_expires_at: Option<i64>,
    absent_until: Option<i64>,
    grounds: Option<&'a str>,
}

/// Key and body are the intent's own: a later holder never brings others.
const ATTEMPTS_INSERT: &str = "
    INSERT INTO refund_attempts (attempt_id, intent_id, kind, token_epoch, token_counter, session_id, installed_version,
        idempotency_key, request_body, started_at, deadline, key_expires_at, absent_until, grounds)
    SELECT a.value ->> 'attempt_id', i.intent_id, a.value ->> 'kind', a.value ->> 'epoch', a.value ->> 'counter',
        a.value ->> 'session_id', a.value ->> 'version', i.idempotency_key,
        CASE a.value ->> 'kind' WHEN 'create' THEN i.create_body END, a.value ->> 'started_at', a.value ->> 'deadline',
        a.value ->> 'key_expires_at', a.value ->> 'absent_until', a.value ->> 'grounds'
    FROM json_each(?1) AS a CROSS JOIN refund_intents AS i ON i.intent_id = a.value ->> 'intent_id'
    WHERE ?2 IS NOT NULL";

fn attempt_insert<'a>(winner: &Winner<'a>) -> Option<AttemptInsert<'a>> {
    let change = winner.change;
    let NewAttempt { attempt_id, kind, started_at, deadline, key_expires_at, absent_until, grounds } =
        change.attempt.as_ref()?;
    Some(AttemptInsert {
        attempt_id: *attempt_id,
        intent_id: change.intent_id.as_str(),
        kind: kind.as_str(),
        epoch: change.token.epoch,
        counter: change.token.counter,
        session_id: change.holder_session,
        version: winner.version(),
        started_at: started_at.timestamp_micros(),
        deadline: deadline.timestamp_micros(),
        key_expires_at: key_expires_at.map(|at| at.timestamp_micros()),
        absent_until: absent_until.map(|at| at.timestamp_micros()),
        grounds: grounds.as_deref(),
    })
}

#[derive(Debug, Serialize)]
struct OutcomeInsert<'a> {
    attempt_id: AttemptId,
    intent_id: &'a str,
    outcome: &'static str,
    detail: String,
    duration_ms: i64,
    late: bool,
}

const OUTCOMES_INSERT: &str = "
    INSERT INTO refund_outcomes (attempt_id, outcome, detail, duration_ms, late, recorded_at)
    SELECT value ->> 'attempt_id', value ->> 'outcome', value ->> 'detail', value ->> 'duration_ms', value ->> 'late', ?2
    FROM json_each(?1)
    WHERE NOT EXISTS (SELECT 1 FROM refund_outcomes AS o WHERE o.attempt_id = value ->> 'attempt_id')";

const ATTEMPTS_COUNT: &str = "
    SELECT count(*) FROM json_each(?1) AS o CROSS JOIN refund_attempts AS a
        ON a.attempt_id = o.value ->> 'attempt_id' AND a.intent_id = o.value ->> 'intent_id'";

/// An attempt keeps its first outcome, also within the batch; so the number written says nothing.
async fn write_outcomes(connection: &mut SqliteConnection, now: i64, winners: &[Winner<'_>]) -> Result<(), StoreError> {
    let mut seen = BTreeSet::new();
    let mut outcomes = Vec::new();
    let given = winners.iter().flat_map(|winner| winner.change.outcomes.iter().map(move |new| (winner, new)));
    for (winner, new) in given {
        if seen.insert((&winner.change.intent_id, new.attempt_id)) {
            outcomes.push(OutcomeInsert {
                attempt_id: new.attempt_id,
                intent_id: winner.change.intent_id.as_str(),
                outcome: new.outcome.as_str(),
                detail: document(&new.outcome)?,
                duration_ms: new.duration_ms,
                late: new.late,
            });
        }
    }
    if outcomes.is_empty() {
        return Ok(());
    }
    let rows = array(&outcomes)?;
    let known: i64 =
        sqlx::query_scalar(ATTEMPTS_COUNT).bind(&rows).fetch_one(&mut *connection).await.map_err(store_error)?;
    if usize::try_from(known).ok() != Some(outcomes.len()) {
        return Err(StoreError::Refused(
            "refund_outcomes_attempt: the outcome is of no attempt of its intent".to_owned(),
        ));
    }
    sqlx::query(OUTCOMES_INSERT).bind(&rows).bind(now).execute(connection).await.map_err(store_error)?;
    Ok(())
}

#[derive(Debug, Serialize)]
struct TransferInsert<'a> {
    intent_id: &'a str,
    kind: &'static str,
    epoch: i64,
    counter: i64,
}

/// A reverse is the contra entry of a post: the same two accounts, the other way round.
const TRANSFERS_INSERT: &str = "
    INSERT INTO ledger_transfers (transfer_id, kind, intent_id, debit_account, credit_account, amount_minor, currency, fence_epoch,
        fence_counter, created_at)
    SELECT (SELECT coalesce(max(transfer_id), 0) FROM ledger_transfers) + 1 + t.key, t.value ->> 'kind', i.intent_id,
        CASE t.value ->> 'kind' WHEN 'post' THEN 'customer_refunds:' || i.currency ELSE 'psp_clearing:' || i.psp || ':' || i.currency END,
        CASE t.value ->> 'kind' WHEN 'post' THEN 'psp_clearing:' || i.psp || ':' || i.currency ELSE 'customer_refunds:' || i.currency END,
        i.amount_minor, i.currency, t.value ->> 'epoch', t.value ->> 'counter', ?2
    FROM json_each(?1) AS t CROSS JOIN refund_intents AS i ON i.intent_id = t.value ->> 'intent_id'";

fn transfer_insert<'a>(winner: &Winner<'a>) -> Option<TransferInsert<'a>> {
    let change = winner.change;
    Some(TransferInsert {
        intent_id: change.intent_id.as_str(),
        kind: change.transfer?.as_str(),
        epoch: change.token.epoch,
        counter: change.token.counter,
    })
}

#[derive(Debug, Serialize)]
struct BreakInsert<'a> {
    intent_id: &'a str,
    class: &'static str,
    detail: &'a str,
    epoch: i64,
    counter: i64,
}

const BREAKS_INSERT: &str = "
    INSERT INTO breaks (break_id, class, intent_id, detail, fence_epoch, fence_counter, created_at)
    SELECT (SELECT coalesce(max(break_id), 0) FROM breaks) + 1 + b.key, b.value ->> 'class', b.value ->> 'intent_id',
        b.value ->> 'detail', b.value ->> 'epoch', b.value ->> 'counter', ?2
    FROM json_each(?1) AS b";

fn break_inserts<'a>(winner: &Winner<'a>) -> impl Iterator<Item = BreakInsert<'a>> {
    let change = winner.change;
    change.breaks.iter().map(|found| BreakInsert {
        intent_id: change.intent_id.as_str(),
        class: found.class,
        detail: &found.detail,
        epoch: change.token.epoch,
        counter: change.token.counter,
    })
}

#[derive(Debug, Serialize)]
struct ReadingInsert<'a> {
    inbox_id: i64,
    refused_because: Option<&'a str>,
    version: i64,
}

const UNREAD_DELETE: &str = "
    DELETE FROM intent_inbox_unread WHERE inbox_id IN (SELECT value ->> 'inbox_id' FROM json_each(?1)) AND ?2 IS NOT NULL";

const READINGS_INSERT: &str = "
    INSERT INTO intent_inbox_readings (inbox_id, refused_because, version, applied_at)
    SELECT value ->> 'inbox_id', value ->> 'refused_because', value ->> 'version', ?2 FROM json_each(?1)";

fn reading_inserts<'a>(winner: &Winner<'a>) -> impl Iterator<Item = ReadingInsert<'a>> {
    let version = winner.version();
    let applied = &winner.change.inbox_applied;
    applied.iter().map(move |applied| ReadingInsert {
        inbox_id: applied.inbox_id,
        refused_because: applied.refused_because.as_deref(),
        version,
    })
}
