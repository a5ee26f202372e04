//! Messages for intents from everyone who is not their holder. The database itself adds the unread twin.

use super::call::Calls;
use super::failure::Failure;
use crate::store::StoreError;
use crate::store::change::{InboxResult, NewInboxRow};
use sqlx::postgres::PgConnection;
use sqlx::types::Json;
use sqlx::{Row, query};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sorted by source id, so that two appends of the same messages wait for each other in one order.
const INBOX_ADD: &str = "
    INSERT INTO intent_inbox (intent_id, source_id, message)
    SELECT n.intent_id, n.source_id, n.message
    FROM unnest($1::text[], $2::text[], $3::jsonb[]) AS n(intent_id, source_id, message)
    JOIN refund_intents i ON i.intent_id = n.intent_id
    ON CONFLICT (source_id) DO NOTHING
    RETURNING source_id, inbox_id";

const SOURCES_KNOWN: &str = "
    SELECT n.source_id FROM unnest($1::text[]) AS l(source_id) JOIN intent_inbox n ON n.source_id = l.source_id";

pub(super) async fn append(calls: &Calls, rows: &[NewInboxRow]) -> Result<Vec<InboxResult>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Arc<[NewInboxRow]> = rows.into();
    calls
        .write("append to inboxes", move |connection| {
            let rows = Arc::clone(&rows);
            Box::pin(async move { append_once(connection, &rows).await })
        })
        .await
}

async fn append_once(connection: &mut PgConnection, rows: &[NewInboxRow]) -> Result<Vec<InboxResult>, Failure> {
    let mut first_of_source: BTreeMap<&str, &NewInboxRow> = BTreeMap::new();
    for row in rows {
        first_of_source.entry(row.source_id.as_str()).or_insert(row);
    }
    let each = || first_of_source.values();
    let added = query(INBOX_ADD)
        .bind(each().map(|row| row.intent_id.as_str()).collect::<Vec<_>>())
        .bind(each().map(|row| row.source_id.as_str()).collect::<Vec<_>>())
        .bind(each().map(|row| Json(&row.message)).collect::<Vec<_>>())
        .fetch_all(&mut *connection)
        .await?;
    let mut ids: BTreeMap<String, i64> = BTreeMap::new();
    for row in &added {
        ids.insert(row.try_get(0)?, row.try_get(1)?);
    }
    let known = if ids.len() == rows.len() { BTreeSet::new() } else { known_sources(connection, rows).await? };
    let mut one = |row: &NewInboxRow| match ids.remove(&row.source_id) {
        Some(inbox_id) => InboxResult::Stored { inbox_id },
        None if known.contains(&row.source_id) => InboxResult::Duplicate,
        None => InboxResult::UnknownIntent,
    };
    Ok(rows.iter().map(&mut one).collect())
}

async fn known_sources(connection: &mut PgConnection, rows: &[NewInboxRow]) -> Result<BTreeSet<String>, Failure> {
    let sources = rows.iter().map(|row| row.source_id.as_str()).collect::<Vec<_>>();
    let rows = query(SOURCES_KNOWN).bind(sources).fetch_all(connection).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
