//! What the rules plan from: rows with their attempts and unread messages, read in at most three statements.
//!
//! The statements do not share a snapshot. A row that moves in between is planned from a mixture, and the plan then loses at its
//! install, which wants the version that was read; no call is made before that.

use super::call::Calls;
use super::failure::Failure;
use super::rows::{self, INTENT_COLUMNS, attempt_columns, inbox_columns, intent_columns};
use crate::store::{Loaded, StoreError};
use chrono::{DateTime, Utc};
use jobs::ids::IntentId;
use jobs::refund::intent::{Attempt, InboxRow, IntentFile};
use sqlx::postgres::PgConnection;
use sqlx::{Row, query};
use std::collections::BTreeMap;
use std::sync::Arc;

const NOW: &str = "SELECT clock_timestamp()";

const CLOCKS: &str = "
    SELECT clock_timestamp(), ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint";

const INTENTS_LOAD: &str = concat!(
    "SELECT ",
    intent_columns!(),
    ", EXISTS (SELECT FROM intent_inbox_unread u WHERE u.intent_id = i.intent_id), (SELECT clock_timestamp()),
      (SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint)
    FROM unnest($1::text[]) WITH ORDINALITY AS l(intent_id, position) JOIN refund_intents i ON i.intent_id = l.intent_id
    ORDER BY l.position"
);

const ATTEMPTS_LOAD: &str = concat!(
    "SELECT ",
    attempt_columns!(),
    " FROM unnest($1::text[]) AS l(intent_id)
      JOIN refund_attempts a ON a.intent_id = l.intent_id
      LEFT JOIN refund_outcomes o ON o.attempt_id = a.attempt_id
    ORDER BY a.installed_version"
);

const UNREAD_LOAD: &str = concat!(
    "SELECT ",
    inbox_columns!(),
    " FROM unnest($1::text[]) AS l(intent_id)
      JOIN intent_inbox_unread u ON u.intent_id = l.intent_id
      JOIN intent_inbox n ON n.inbox_id = u.inbox_id
    ORDER BY n.inbox_id"
);

pub(super) async fn now(calls: &Calls) -> Result<DateTime<Utc>, StoreError> {
    calls
        .read("read the clock", |connection| {
            Box::pin(async move { Ok(query(NOW).fetch_one(connection).await?.try_get(0)?) })
        })
        .await
}

pub(super) async fn load(calls: &Calls, ids: &[IntentId]) -> Result<Loaded, StoreError> {
    let ids: Arc<[IntentId]> = ids.into();
    calls
        .read("load intents", move |connection| {
            let ids = Arc::clone(&ids);
            Box::pin(async move { load_once(connection, &ids).await })
        })
        .await
}

async fn load_once(connection: &mut PgConnection, ids: &[IntentId]) -> Result<Loaded, Failure> {
    let ids: Vec<&str> = ids.iter().map(IntentId::as_str).collect();
    let rows = query(INTENTS_LOAD).bind(&ids).fetch_all(&mut *connection).await?;
    let Some(first) = rows.first() else {
        let row = query(CLOCKS).fetch_one(connection).await?;
        return Ok(Loaded { now: row.try_get(0)?, timeline: row.try_get(1)?, files: Vec::new() });
    };
    let (now, timeline) = (first.try_get(INTENT_COLUMNS + 1)?, first.try_get(INTENT_COLUMNS + 2)?);
    let mut files = Vec::with_capacity(rows.len());
    let mut with_unread: Vec<&str> = Vec::new();
    for row in &rows {
        files.push(IntentFile { intent: rows::intent(row)?, attempts: Vec::new(), unread: Vec::new() });
        if row.try_get(INTENT_COLUMNS)? {
            with_unread.push(row.try_get(0)?);
        }
    }
    // An intent nobody has touched has no attempts.
    let touched: Vec<String> =
        files.iter().filter(|f| f.intent.version > 1).map(|f| f.intent.intent_id.as_str().to_owned()).collect();
    let mut attempts = if touched.is_empty() { BTreeMap::new() } else { read_attempts(connection, &touched).await? };
    let mut unread =
        if with_unread.is_empty() { BTreeMap::new() } else { read_unread(connection, &with_unread).await? };
    for file in &mut files {
        file.attempts = attempts.remove(&file.intent.intent_id).unwrap_or_default();
        file.unread = unread.remove(&file.intent.intent_id).unwrap_or_default();
    }
    Ok(Loaded { now, timeline, files })
}

async fn read_attempts(
    connection: &mut PgConnection,
    ids: &[String],
) -> Result<BTreeMap<IntentId, Vec<Attempt>>, Failure> {
    let mut by_intent: BTreeMap<IntentId, Vec<Attempt>> = BTreeMap::new();
    for row in &query(ATTEMPTS_LOAD).bind(ids).fetch_all(connection).await? {
        let attempt = rows::attempt(row)?;
        by_intent.entry(attempt.intent_id.clone()).or_default().push(attempt);
    }
    Ok(by_intent)
}

async fn read_unread(
    connection: &mut PgConnection,
    ids: &[&str],
) -> Result<BTreeMap<IntentId, Vec<InboxRow>>, Failure> {
    let mut by_intent: BTreeMap<IntentId, Vec<InboxRow>> = BTreeMap::new();
    for row in &query(UNREAD_LOAD).bind(ids).fetch_all(connection).await? {
        let message = rows::inbox_row(row)?;
        by_intent.entry(message.intent_id.clone()).or_default().push(message);
    }
    Ok(by_intent)
}
