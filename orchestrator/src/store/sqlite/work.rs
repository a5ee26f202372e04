//! What a worker asks before it plans: which intents are due, and what is on record about them.

use super::connect::store_error;
use super::rows::{self, AttemptRow, IntentRow, MessageRow};
use super::statement::{array, now_micros};
use crate::store::{DueQuery, Loaded, StoreError};
use jobs::ids::IntentId;
use jobs::refund::intent::{Attempt, InboxRow, Intent, IntentFile};
use sqlx::SqliteConnection;
use std::collections::BTreeMap;

/// PostgreSQL counts timelines; here there is one.
const TIMELINE: i64 = 1;

/// Ways to be due, each by its own index: a create's or a lookup's time has come; an open step whose session is gone; something
/// unread while nobody holds the intent.
const INTENTS_DUE_SELECT: &str = "
    SELECT intent_id FROM (
        SELECT intent_id, next_action_at FROM (
            SELECT intent_id, next_action_at FROM refund_intents
            WHERE psp = ?1 AND psp_account = ?2 AND machine_version = ?3 AND next_action = 'lookup' AND next_action_at <= ?4
            ORDER BY next_action_at, intent_id LIMIT ?7)
        UNION
        SELECT intent_id, next_action_at FROM (
            SELECT intent_id, next_action_at FROM refund_intents
            WHERE psp = ?1 AND psp_account = ?2 AND machine_version = ?3 AND next_action = 'create' AND next_action_at <= ?4 AND ?5
            ORDER BY next_action_at, intent_id LIMIT ?7)
        UNION
        SELECT intent_id, next_action_at FROM refund_intents INDEXED BY refund_intents_open
        WHERE ?6 IS NOT NULL AND holder_session IS NOT NULL AND holder_session NOT IN (SELECT value FROM json_each(?6))
          AND psp = ?1 AND psp_account = ?2 AND machine_version = ?3
        UNION
        SELECT i.intent_id, i.next_action_at
        FROM intent_inbox_unread AS u CROSS JOIN refund_intents AS i ON i.intent_id = u.intent_id
        WHERE i.psp = ?1 AND i.psp_account = ?2 AND i.machine_version = ?3 AND i.holder_session IS NULL)
    ORDER BY next_action_at NULLS LAST, intent_id LIMIT ?7";

/// Ids of intents to look at now.
pub(super) async fn due(connection: &mut SqliteConnection, query: DueQuery) -> Result<Vec<IntentId>, StoreError> {
    let now = now_micros(connection).await?;
    let found: Vec<String> = sqlx::query_scalar(INTENTS_DUE_SELECT)
        .bind(query.psp)
        .bind(query.psp_account)
        .bind(query.machine_version)
        .bind(now)
        .bind(query.creates_allowed)
        .bind(query.live_sessions.as_deref().map(array).transpose()?)
        .bind(i64::try_from(query.limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    Ok(found.into_iter().map(IntentId::from_stored).collect())
}

/// Those of a JSON array of ids that have something unread.
pub(super) async fn unread_among(
    connection: &mut SqliteConnection,
    ids: Vec<IntentId>,
) -> Result<Vec<IntentId>, StoreError> {
    let found: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT intent_id FROM intent_inbox_unread WHERE intent_id IN (SELECT value FROM json_each(?1))",
    )
    .bind(array(&ids)?)
    .fetch_all(connection)
    .await
    .map_err(store_error)?;
    Ok(found.into_iter().map(IntentId::from_stored).collect())
}

const INTENTS_SELECT: &str = "SELECT * FROM refund_intents WHERE intent_id IN (SELECT value FROM json_each(?1))";

const ATTEMPTS_SELECT: &str = "
    SELECT a.*, o.detail, o.duration_ms, o.late, o.recorded_at
    FROM refund_attempts AS a LEFT JOIN refund_outcomes AS o ON o.attempt_id = a.attempt_id
    WHERE a.intent_id IN (SELECT value FROM json_each(?1)) ORDER BY a.intent_id, a.installed_version";

const UNREAD_SELECT: &str = "
    SELECT m.* FROM intent_inbox_unread AS u JOIN intent_inbox AS m ON m.inbox_id = u.inbox_id
    WHERE u.intent_id IN (SELECT value FROM json_each(?1)) ORDER BY m.inbox_id";

/// The rows with their attempts, outcomes and unread inbox, all of one moment.
pub(super) async fn load(connection: &mut SqliteConnection, ids: Vec<IntentId>) -> Result<Loaded, StoreError> {
    let now = rows::time("now", now_micros(connection).await?)?;
    let asked = array(&ids)?;
    let mut intents: BTreeMap<_, _> = intents(connection, &asked)
        .await?
        .into_iter()
        .map(|intent| (intent.intent_id.clone(), IntentFile { intent, attempts: Vec::new(), unread: Vec::new() }))
        .collect();
    for attempt in attempts(connection, &asked).await? {
        if let Some(file) = intents.get_mut(&attempt.intent_id) {
            file.attempts.push(attempt);
        }
    }
    let unread: Vec<MessageRow> =
        sqlx::query_as(UNREAD_SELECT).bind(&asked).fetch_all(connection).await.map_err(store_error)?;
    for message in rows::all::<_, InboxRow>(unread)? {
        if let Some(file) = intents.get_mut(&message.intent_id) {
            file.unread.push(message);
        }
    }
    let files = ids.iter().filter_map(|id| intents.remove(id)).collect();
    Ok(Loaded { now, timeline: TIMELINE, files })
}

/// Intents by a JSON array of ids, in no order.
pub(super) async fn intents(connection: &mut SqliteConnection, asked: &str) -> Result<Vec<Intent>, StoreError> {
    let found: Vec<IntentRow> =
        sqlx::query_as(INTENTS_SELECT).bind(asked).fetch_all(connection).await.map_err(store_error)?;
    rows::all(found)
}

/// Attempts with their outcomes by a JSON array of intent ids, in the order they were installed.
pub(super) async fn attempts(connection: &mut SqliteConnection, asked: &str) -> Result<Vec<Attempt>, StoreError> {
    let found: Vec<AttemptRow> =
        sqlx::query_as(ATTEMPTS_SELECT).bind(asked).fetch_all(connection).await.map_err(store_error)?;
    rows::all(found)
}
