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

/// In the order given, which is the order they are read in. Two appends of the same messages in different order may block each other;
/// the one that the server undoes is run again.
const INBOX_ADD: &str = "
    INSERT INTO intent_inbox (intent_id, source_id, message)
    SELECT n.intent_id, n.source_id, n.message
    FROM unnest($1::text[], $2::text[], $3::jsonb[]) AS n(intent_id, source_id, message)
    JOIN refund_intents i ON i.intent_id = n.intent_id
    ON CONFLICT (source_id) DO NOTHING
    RETURNING source_id, intent_id, inbox_id";

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
    let added = query(INBOX_ADD)
        .bind(rows.iter().map(|row| row.intent_id.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.source_id.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| Json(&row.message)).collect::<Vec<_>>())
        .fetch_all(&mut *connection)
        .await?;
    let mut ids: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for row in &added {
        ids.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
    }
    let known = if ids.len() == rows.len() { BTreeSet::new() } else { known_sources(connection, rows).await? };
    let ours: BTreeSet<&str> = ids.keys().map(|(source, _)| *source).collect();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut results = Vec::with_capacity(rows.len());
    for row in rows {
        let source = row.source_id.as_str();
        // Removed, so that the same message a second time in the batch is a duplicate.
        results.push(match ids.remove(&(source, row.intent_id.as_str())) {
            Some(inbox_id) => {
                told.insert(source);
                InboxResult::Stored { inbox_id }
            }
            // Of a source that this batch brought, only what comes after it repeats it.
            None if told.contains(source) || (known.contains(source) && !ours.contains(source)) => {
                InboxResult::Duplicate
            }
            None => InboxResult::UnknownIntent,
        });
    }
    Ok(results)
}

async fn known_sources(connection: &mut PgConnection, rows: &[NewInboxRow]) -> Result<BTreeSet<String>, Failure> {
    let sources = rows.iter().map(|row| row.source_id.as_str()).collect::<Vec<_>>();
    let rows = query(SOURCES_KNOWN).bind(sources).fetch_all(connection).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
