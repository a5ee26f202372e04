//! One intent by any id a person may have in hand.

use super::call::Calls;
use super::sql_limit;
use crate::store::StoreError;
use jobs::ids::IntentId;
use sqlx::{Row, query};
use std::sync::Arc;

/// Each part is a look into an index of its own and bounded, newest first.
const INTENTS_BY_ANY_ID: &str = include_str!("sql/intents_by_any_id.sql");

pub(super) async fn find(calls: &Calls, any_id: &str, limit: usize) -> Result<Vec<IntentId>, StoreError> {
    let any_id: Arc<str> = any_id.into();
    calls
        .read("find an intent", move |connection| {
            let any_id = Arc::clone(&any_id);
            Box::pin(async move {
                let rows = query(INTENTS_BY_ANY_ID).bind(&*any_id).bind(sql_limit(limit)).fetch_all(connection).await?;
                rows.iter().map(|row| Ok(IntentId::from_stored(row.try_get(0)?))).collect()
            })
        })
        .await
}
