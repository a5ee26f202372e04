//! Which intents a worker should look at now: three questions, each answered from a partial index that holds only open work, merged
//! here. None of them touches a finished intent, however many there are.

use super::call::Calls;
use super::failure::Failure;
use super::sql_limit;
use crate::store::{DueQuery, StoreError};
use chrono::{DateTime, Utc};
use jobs::ids::IntentId;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Row, query};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// One part for each action, so that a backlog of creates is not read while creates are stopped.
const INTENTS_DUE: &str = "
    (SELECT intent_id, next_action_at FROM refund_intents
     WHERE $4 AND psp = $1 AND psp_account = $2 AND machine_version = $3 AND next_action = 'create'
       AND next_action_at <= (SELECT clock_timestamp())
     ORDER BY next_action_at LIMIT $5)
    UNION ALL
    (SELECT intent_id, next_action_at FROM refund_intents
     WHERE psp = $1 AND psp_account = $2 AND machine_version = $3 AND next_action = 'lookup'
       AND next_action_at <= (SELECT clock_timestamp())
     ORDER BY next_action_at LIMIT $5)";

const INTENTS_ORPHANED: &str = include_str!("sql/intents_orphaned.sql");

const INTENTS_WITH_UNREAD: &str = "
    SELECT u.intent_id, i.next_action_at
    FROM intent_inbox_unread u
    CROSS JOIN LATERAL (SELECT o.* FROM refund_intents o WHERE o.intent_id = u.intent_id OFFSET 0) i
    WHERE i.psp = $1 AND i.psp_account = $2 AND i.machine_version = $3
      AND i.holder_session IS NULL
    ORDER BY u.inbox_id LIMIT $4";

const UNREAD_AMONG: &str = "SELECT DISTINCT intent_id FROM intent_inbox_unread WHERE intent_id = ANY($1)";

pub(super) async fn due(calls: &Calls, wanted: &DueQuery) -> Result<Vec<IntentId>, StoreError> {
    let wanted = Arc::new(wanted.clone());
    calls
        .read("find due intents", move |connection| {
            let wanted = Arc::clone(&wanted);
            Box::pin(async move { due_once(connection, &wanted).await })
        })
        .await
}

pub(super) async fn unread_among(calls: &Calls, ids: &[IntentId]) -> Result<Vec<IntentId>, StoreError> {
    let ids: Arc<Vec<String>> = Arc::new(ids.iter().map(|id| id.as_str().to_owned()).collect());
    calls
        .read("find unread inbox rows", move |connection| {
            let ids = Arc::clone(&ids);
            Box::pin(async move {
                let rows = query(UNREAD_AMONG).bind(ids.as_slice()).fetch_all(connection).await?;
                rows.iter().map(|row| Ok(IntentId::from_stored(row.try_get(0)?))).collect()
            })
        })
        .await
}

async fn due_once(connection: &mut PgConnection, wanted: &DueQuery) -> Result<Vec<IntentId>, Failure> {
    let limit = sql_limit(wanted.limit);
    let mut found = BTreeSet::new();
    let rows = query(INTENTS_DUE)
        .bind(&wanted.psp)
        .bind(&wanted.psp_account)
        .bind(wanted.machine_version)
        .bind(wanted.creates_allowed)
        .bind(limit)
        .fetch_all(&mut *connection)
        .await?;
    collect(&rows, &mut found)?;
    let rows = query(INTENTS_WITH_UNREAD)
        .bind(&wanted.psp)
        .bind(&wanted.psp_account)
        .bind(wanted.machine_version)
        .bind(limit)
        .fetch_all(&mut *connection)
        .await?;
    collect(&rows, &mut found)?;
    if let Some(live) = &wanted.live_sessions {
        let sessions: Vec<Uuid> = live.iter().map(|session| session.0).collect();
        let rows = query(INTENTS_ORPHANED)
            .bind(&wanted.psp)
            .bind(&wanted.psp_account)
            .bind(wanted.machine_version)
            .bind(&sessions)
            .bind(limit)
            .fetch_all(&mut *connection)
            .await?;
        collect(&rows, &mut found)?;
    }
    let mut seen = BTreeSet::new();
    let ids = found.into_iter().map(|(_, id)| id).filter(|id| seen.insert(id.clone()));
    Ok(ids.take(wanted.limit).collect())
}

/// Sorted by next action, those without one first: they are final or parked and someone has just said something about them.
fn collect(rows: &[PgRow], found: &mut BTreeSet<(Option<DateTime<Utc>>, IntentId)>) -> Result<(), Failure> {
    for row in rows {
        found.insert((row.try_get(1)?, IntentId::from_stored(row.try_get(0)?)));
    }
    Ok(())
}
