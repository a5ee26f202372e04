//! What others than the holder have to say about an intent: appended, each source id once. A trigger adds the unread twin.

use super::connect::store_error;
use super::statement::{array, document, expect_rows, now_micros};
use crate::store::StoreError;
use crate::store::change::{InboxResult, NewInboxRow};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::collections::BTreeSet;

const INTENT_IDS_SELECT: &str =
    "SELECT intent_id FROM refund_intents WHERE intent_id IN (SELECT value FROM json_each(?1))";

const SOURCE_IDS_SELECT: &str =
    "SELECT source_id FROM intent_inbox WHERE source_id IN (SELECT value FROM json_each(?1))";

const INBOX_ID_HIGHEST_SELECT: &str = "SELECT coalesce(max(inbox_id), 0) FROM intent_inbox";

const INBOX_INSERT: &str = "
    INSERT INTO intent_inbox (inbox_id, intent_id, source_id, message, received_at)
    SELECT value ->> 'inbox_id', value ->> 'intent_id', value ->> 'source_id', value ->> 'message', ?2 FROM json_each(?1)
    WHERE NOT EXISTS (SELECT 1 FROM intent_inbox AS m WHERE m.source_id = value ->> 'source_id')";

#[derive(Debug, Serialize)]
struct MessageInsert<'a> {
    inbox_id: i64,
    intent_id: &'a str,
    source_id: &'a str,
    message: String,
}

/// Appends what is new, in the order given.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    given: Vec<NewInboxRow>,
) -> Result<Vec<InboxResult>, StoreError> {
    let now = now_micros(connection).await?;
    let intents: Vec<_> = given.iter().map(|row| row.intent_id.as_str()).collect();
    let intents = texts(connection, INTENT_IDS_SELECT, &intents).await?;
    let sources: Vec<_> = given.iter().map(|row| row.source_id.as_str()).collect();
    let mut sources = texts(connection, SOURCE_IDS_SELECT, &sources).await?;
    let mut inbox_id: i64 =
        sqlx::query_scalar(INBOX_ID_HIGHEST_SELECT).fetch_one(&mut *connection).await.map_err(store_error)?;

    let mut results = Vec::with_capacity(given.len());
    let mut wanted = Vec::new();
    for row in &given {
        // What was seen before is a repeat whatever it names now; what is not stored is not seen.
        if sources.contains(&row.source_id) {
            results.push(InboxResult::Duplicate);
        } else if !intents.contains(row.intent_id.as_str()) {
            results.push(InboxResult::UnknownIntent);
        } else {
            sources.insert(row.source_id.clone());
            inbox_id += 1;
            let message = document(&row.message)?;
            let (intent_id, source_id) = (row.intent_id.as_str(), row.source_id.as_str());
            wanted.push(MessageInsert { inbox_id, intent_id, source_id, message });
            results.push(InboxResult::Stored { inbox_id });
        }
    }
    if !wanted.is_empty() {
        let done =
            sqlx::query(INBOX_INSERT).bind(array(&wanted)?).bind(now).execute(connection).await.map_err(store_error)?;
        expect_rows("inbox rows inserted", done.rows_affected(), wanted.len())?;
    }
    Ok(results)
}

/// Which of these texts the statement finds.
async fn texts(
    connection: &mut SqliteConnection,
    statement: &'static str,
    asked: &[&str],
) -> Result<BTreeSet<String>, StoreError> {
    let found: Vec<String> =
        sqlx::query_scalar(statement).bind(array(asked)?).fetch_all(connection).await.map_err(store_error)?;
    Ok(found.into_iter().collect())
}
