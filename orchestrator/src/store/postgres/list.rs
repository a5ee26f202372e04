//! Pages of intents, newest first.
//!
//! The cursor is the place of the last row of a page, so rows that come in meanwhile move nothing. The statement is planned for each
//! call (not cached): which index is right depends on what the filter names.

use super::call::Calls;
use super::failure::Failure;
use super::rows::{self, intent_columns};
use super::sql_limit;
use crate::store::StoreError;
use crate::store::read::{IntentFilter, IntentPage};
use chrono::{DateTime, Utc};
use jobs::refund::intent::Intent;
use jobs::refund::state::State;
use sqlx::postgres::PgConnection;
use sqlx::query;
use std::sync::Arc;

const INTENTS_LIST: &str = concat!(
    "SELECT ",
    intent_columns!(),
    " FROM refund_intents i
    WHERE ($1::text[] IS NULL OR i.state = ANY($1))
      AND ($2::text IS NULL OR i.psp = $2)
      AND ($3::text IS NULL OR i.payment_id = $3)
      AND ($4::text IS NULL OR i.merchant_reference = $4)
      AND ($5::timestamptz IS NULL OR i.created_at >= $5)
      AND ($6::timestamptz IS NULL OR i.created_at < $6)
      AND ($7::timestamptz IS NULL OR (i.created_at, i.intent_id) < ($7, $8::text))
    ORDER BY i.created_at DESC, i.intent_id DESC LIMIT $9"
);

/// The place of the last row of a page, as text that its users pass back unread.
fn write_cursor(intent: &Intent) -> String {
    format!("{}.{}", intent.created_at.timestamp_micros(), intent.intent_id)
}

fn read_cursor(text: &str) -> Result<(DateTime<Utc>, String), StoreError> {
    text.split_once('.')
        .and_then(|(micros, id)| Some((DateTime::from_timestamp_micros(micros.parse().ok()?)?, id.to_owned())))
        .ok_or_else(|| StoreError::Refused(format!("cursor {text:?} is not one that a page ended with")))
}

pub(super) async fn list(
    calls: &Calls,
    filter: &IntentFilter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<IntentPage, StoreError> {
    let after = cursor.map(read_cursor).transpose()?;
    let asked = Arc::new((filter.clone(), after));
    calls
        .read("list intents", move |connection| {
            let asked = Arc::clone(&asked);
            Box::pin(async move { list_once(connection, &asked.0, asked.1.as_ref(), limit).await })
        })
        .await
}

async fn list_once(
    connection: &mut PgConnection,
    filter: &IntentFilter,
    after: Option<&(DateTime<Utc>, String)>,
    limit: usize,
) -> Result<IntentPage, Failure> {
    let states: Option<Vec<&str>> =
        (!filter.states.is_empty()).then(|| filter.states.iter().copied().map(State::as_str).collect());
    let rows = query(INTENTS_LIST)
        .bind(states)
        .bind(filter.psp.as_deref())
        .bind(filter.payment_id.as_ref().map(|id| id.as_str()))
        .bind(filter.merchant_reference.as_deref())
        .bind(filter.created_from)
        .bind(filter.created_before)
        .bind(after.map(|place| place.0))
        .bind(after.map(|place| place.1.as_str()))
        // One more tells whether there is a next page.
        .bind(sql_limit(limit) + 1)
        .persistent(false)
        .fetch_all(connection)
        .await?;
    let intents = rows.iter().take(limit).map(rows::intent).collect::<Result<Vec<_>, _>>()?;
    let next_cursor = if rows.len() > limit { intents.last().map(write_cursor) } else { None };
    Ok(IntentPage { intents, next_cursor })
}
