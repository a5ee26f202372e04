//! What is written beside a change: attempts, outcomes, transfers, breaks, readings of the inbox. Kinds without rows cost nothing.

use super::apply::Winner;
use super::failure::Failure;
use crate::store::StoreError;
use crate::store::change::{Change, NewAttempt, NewBreak, NewOutcome, TransferKind};
use sqlx::postgres::PgConnection;
use sqlx::types::Json;
use sqlx::{Row, query};
use std::collections::BTreeSet;

/// Key, body, session, token and version are those the intent has just been given.
const ATTEMPTS_ADD: &str = "
    INSERT INTO refund_attempts (attempt_id, intent_id, kind, token_epoch, token_counter, session_id, installed_version,
                                 idempotency_key, request_body, started_at, deadline, key_expires_at, absent_until, grounds)
    SELECT a.attempt_id, i.intent_id, a.kind, i.fence_epoch, i.fence_counter, i.holder_session, i.version, i.idempotency_key,
           CASE a.kind WHEN 'create' THEN i.create_body END, a.started_at, a.deadline, a.key_expires_at, a.absent_until, a.grounds
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
                $8::text[]) AS a(attempt_id, intent_id, kind, started_at, deadline, key_expires_at, absent_until, grounds)
    JOIN refund_intents i ON i.intent_id = a.intent_id";

/// An attempt of another intent comes out as NULL, which the table refuses.
const OUTCOMES_ADD: &str = "
    INSERT INTO refund_outcomes (attempt_id, outcome, detail, duration_ms, late)
    SELECT a.attempt_id, o.outcome, o.detail, o.duration_ms, o.late
    FROM unnest($1::uuid[], $2::text[], $3::jsonb[], $4::bigint[], $5::boolean[], $6::text[])
         AS o(attempt_id, outcome, detail, duration_ms, late, intent_id)
    LEFT JOIN refund_attempts a ON a.attempt_id = o.attempt_id AND a.intent_id = o.intent_id
    ON CONFLICT (attempt_id) DO NOTHING";

const TRANSFERS_ADD: &str = "
    INSERT INTO ledger_transfers (kind, intent_id, debit_account, credit_account, amount_minor, currency, fence_epoch, fence_counter)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[])";

const BREAKS_ADD: &str = "
    INSERT INTO breaks (class, intent_id, detail, fence_epoch, fence_counter)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])";

const INBOX_READ: &str = "
    SELECT r.position FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS r(inbox_id, intent_id, position)
    WHERE NOT EXISTS (SELECT FROM intent_inbox_unread u WHERE u.inbox_id = r.inbox_id AND u.intent_id = r.intent_id)";

const READINGS_ADD: &str = "
    INSERT INTO intent_inbox_readings (inbox_id, refused_because, version)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])";

const UNREAD_REMOVE: &str = "DELETE FROM intent_inbox_unread WHERE inbox_id = ANY($1::bigint[])";

/// Fewer rows than meant: the transaction must not commit.
pub(super) fn check_all_written(what: &str, written: u64, meant: usize) -> Result<(), Failure> {
    if u64::try_from(meant).is_ok_and(|meant| meant == written) {
        return Ok(());
    }
    Err(StoreError::Refused(format!("{what}: {written} of {meant} rows written")).into())
}

/// Changes that name an inbox row which is no longer unread. No lock is needed: twins go only with a change of their intent, and one
/// that comes in between moves the version, so the guarded UPDATE loses.
pub(super) async fn inbox_already_read(
    connection: &mut PgConnection,
    changes: &[Change],
    round: &[usize],
) -> Result<BTreeSet<usize>, Failure> {
    let named: Vec<(usize, i64)> =
        round.iter().flat_map(|index| changes[*index].inbox_applied.iter().map(|row| (*index, row.inbox_id))).collect();
    if named.is_empty() {
        return Ok(BTreeSet::new());
    }
    let gone = query(INBOX_READ)
        .bind(named.iter().map(|(_, inbox_id)| *inbox_id).collect::<Vec<_>>())
        .bind(named.iter().map(|(index, _)| changes[*index].intent_id.as_str()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut indices = BTreeSet::new();
    for row in &gone {
        let position: i64 = row.try_get(0)?;
        let named = usize::try_from(position - 1).ok().and_then(|place| named.get(place));
        indices.insert(named.ok_or_else(|| StoreError::Unreadable(format!("position {position} of a message")))?.0);
    }
    Ok(indices)
}

pub(super) async fn write(connection: &mut PgConnection, winners: &[Winner<'_>]) -> Result<(), Failure> {
    add_attempts(connection, winners).await?;
    add_outcomes(connection, winners).await?;
    add_transfers(connection, winners).await?;
    add_breaks(connection, winners).await?;
    read_inbox(connection, winners).await
}

async fn add_attempts(connection: &mut PgConnection, winners: &[Winner<'_>]) -> Result<(), Failure> {
    let (intents, attempts): (Vec<&str>, Vec<&NewAttempt>) = winners
        .iter()
        .filter_map(|w| w.change.attempt.as_ref().map(|attempt| (w.change.intent_id.as_str(), attempt)))
        .unzip();
    if attempts.is_empty() {
        return Ok(());
    }
    let done = query(ATTEMPTS_ADD)
        .bind(attempts.iter().map(|a| a.attempt_id.0).collect::<Vec<_>>())
        .bind(&intents)
        .bind(attempts.iter().map(|a| a.kind.as_str()).collect::<Vec<_>>())
        .bind(attempts.iter().map(|a| a.started_at).collect::<Vec<_>>())
        .bind(attempts.iter().map(|a| a.deadline).collect::<Vec<_>>())
        .bind(attempts.iter().map(|a| a.key_expires_at).collect::<Vec<_>>())
        .bind(attempts.iter().map(|a| a.absent_until).collect::<Vec<_>>())
        .bind(attempts.iter().map(|a| a.grounds.as_deref()).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    check_all_written("attempts", done.rows_affected(), attempts.len())
}

async fn add_outcomes(connection: &mut PgConnection, winners: &[Winner<'_>]) -> Result<(), Failure> {
    let (intents, outcomes): (Vec<&str>, Vec<&NewOutcome>) = winners
        .iter()
        .flat_map(|w| w.change.outcomes.iter().map(|outcome| (w.change.intent_id.as_str(), outcome)))
        .unzip();
    if outcomes.is_empty() {
        return Ok(());
    }
    query(OUTCOMES_ADD)
        .bind(outcomes.iter().map(|o| o.attempt_id.0).collect::<Vec<_>>())
        .bind(outcomes.iter().map(|o| o.outcome.as_str()).collect::<Vec<_>>())
        .bind(outcomes.iter().map(|o| Json(&o.outcome)).collect::<Vec<_>>())
        .bind(outcomes.iter().map(|o| o.duration_ms).collect::<Vec<_>>())
        .bind(outcomes.iter().map(|o| o.late).collect::<Vec<_>>())
        .bind(&intents)
        .execute(connection)
        .await?;
    Ok(())
}

async fn add_transfers(connection: &mut PgConnection, winners: &[Winner<'_>]) -> Result<(), Failure> {
    let posting: Vec<(&Winner<'_>, TransferKind)> =
        winners.iter().filter_map(|w| w.change.transfer.map(|kind| (w, kind))).collect();
    if posting.is_empty() {
        return Ok(());
    }
    let (debits, credits): (Vec<String>, Vec<String>) = posting
        .iter()
        .map(|(w, kind)| {
            let customer = format!("customer_refunds:{}", w.currency);
            let clearing = format!("psp_clearing:{}:{}", w.psp, w.currency);
            match kind {
                TransferKind::Post => (customer, clearing),
                TransferKind::Reverse => (clearing, customer),
            }
        })
        .unzip();
    query(TRANSFERS_ADD)
        .bind(posting.iter().map(|(_, kind)| kind.as_str()).collect::<Vec<_>>())
        .bind(posting.iter().map(|(w, _)| w.change.intent_id.as_str()).collect::<Vec<_>>())
        .bind(&debits)
        .bind(&credits)
        .bind(posting.iter().map(|(w, _)| w.amount_minor).collect::<Vec<_>>())
        .bind(posting.iter().map(|(w, _)| w.currency.as_str()).collect::<Vec<_>>())
        .bind(posting.iter().map(|(w, _)| w.change.token.epoch).collect::<Vec<_>>())
        .bind(posting.iter().map(|(w, _)| w.change.token.counter).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

async fn add_breaks(connection: &mut PgConnection, winners: &[Winner<'_>]) -> Result<(), Failure> {
    let breaks: Vec<(&Change, &NewBreak)> =
        winners.iter().flat_map(|w| w.change.breaks.iter().map(|found| (w.change, found))).collect();
    if breaks.is_empty() {
        return Ok(());
    }
    query(BREAKS_ADD)
        .bind(breaks.iter().map(|(_, found)| found.class).collect::<Vec<_>>())
        .bind(breaks.iter().map(|(change, _)| change.intent_id.as_str()).collect::<Vec<_>>())
        .bind(breaks.iter().map(|(_, found)| found.detail.as_str()).collect::<Vec<_>>())
        .bind(breaks.iter().map(|(change, _)| change.token.epoch).collect::<Vec<_>>())
        .bind(breaks.iter().map(|(change, _)| change.token.counter).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

/// Readings first, then their twins go: the trigger on the twins wants to see the readings.
async fn read_inbox(connection: &mut PgConnection, winners: &[Winner<'_>]) -> Result<(), Failure> {
    let read: Vec<_> = winners
        .iter()
        .flat_map(|w| w.change.inbox_applied.iter().map(|row| (row, w.change.expected_version + 1)))
        .collect();
    if read.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = read.iter().map(|(row, _)| row.inbox_id).collect();
    query(READINGS_ADD)
        .bind(&ids)
        .bind(read.iter().map(|(row, _)| row.refused_because.as_deref()).collect::<Vec<_>>())
        .bind(read.iter().map(|(_, version)| *version).collect::<Vec<_>>())
        .execute(&mut *connection)
        .await?;
    let done = query(UNREAD_REMOVE).bind(&ids).execute(connection).await?;
    check_all_written("unread messages", done.rows_affected(), ids.len())
}
