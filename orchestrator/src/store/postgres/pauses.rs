//! Stopping a provider's creates, on record: the row and its line in the audit log are one transaction.

use super::audit_log::{self, Deed};
use super::call::Calls;
use super::failure::Failure;
use crate::store::StoreError;
use crate::store::read::PspPause;
use serde_json::{Value, json};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Row, query};
use std::sync::Arc;

const PAUSES: &str = "SELECT psp, actor, reason, paused_at FROM psp_pauses ORDER BY psp";

const PAUSE_BY_PSP: &str = "SELECT psp, actor, reason, paused_at FROM psp_pauses WHERE psp = $1";

const PAUSE_SET: &str = "
    INSERT INTO psp_pauses (psp, actor, reason) VALUES ($1, $2, $3)
    ON CONFLICT (psp) DO UPDATE SET actor = excluded.actor, reason = excluded.reason, paused_at = excluded.paused_at";

const PAUSE_REMOVE: &str = "DELETE FROM psp_pauses WHERE psp = $1";

pub(super) async fn pause(calls: &Calls, psp: &str, actor: &str, reason: &str) -> Result<(), StoreError> {
    let asked = Arc::new([psp.to_owned(), actor.to_owned(), reason.to_owned()]);
    calls
        .write("pause a provider", move |connection| {
            let asked = Arc::clone(&asked);
            Box::pin(async move {
                let [psp, actor, reason] = &*asked;
                audit_log::lock(connection).await?;
                let before = read_one(connection, psp).await?;
                query(PAUSE_SET).bind(psp).bind(actor).bind(reason).execute(&mut *connection).await?;
                let change = (before.as_ref().map(as_json), Some(json!({ "actor": actor, "reason": reason })));
                add_audit(connection, &asked, "psp.pause", change).await
            })
        })
        .await
}

pub(super) async fn resume(calls: &Calls, psp: &str, actor: &str, reason: &str) -> Result<bool, StoreError> {
    let asked = Arc::new([psp.to_owned(), actor.to_owned(), reason.to_owned()]);
    calls
        .write("resume a provider", move |connection| {
            let asked = Arc::clone(&asked);
            Box::pin(async move {
                audit_log::lock(connection).await?;
                let Some(before) = read_one(connection, &asked[0]).await? else { return Ok(false) };
                query(PAUSE_REMOVE).bind(&asked[0]).execute(&mut *connection).await?;
                add_audit(connection, &asked, "psp.resume", (Some(as_json(&before)), None)).await?;
                Ok(true)
            })
        })
        .await
}

pub(super) async fn list(calls: &Calls) -> Result<Vec<PspPause>, StoreError> {
    calls
        .read("list paused providers", |connection| {
            Box::pin(async move { query(PAUSES).fetch_all(connection).await?.iter().map(pause_row).collect() })
        })
        .await
}

pub(super) async fn read_one(connection: &mut PgConnection, psp: &str) -> Result<Option<PspPause>, Failure> {
    query(PAUSE_BY_PSP).bind(psp).fetch_optional(connection).await?.as_ref().map(pause_row).transpose()
}

fn pause_row(row: &PgRow) -> Result<PspPause, Failure> {
    Ok(PspPause { psp: row.try_get(0)?, actor: row.try_get(1)?, reason: row.try_get(2)?, paused_at: row.try_get(3)? })
}

fn as_json(pause: &PspPause) -> Value {
    json!({ "actor": pause.actor, "reason": pause.reason })
}

/// The caller holds the audit lock.
async fn add_audit(
    connection: &mut PgConnection,
    [psp, actor, reason]: &[String; 3],
    action: &'static str,
    (before, after): (Option<Value>, Option<Value>),
) -> Result<(), Failure> {
    let object = format!("psp/{psp}");
    let deed = Deed { actor, action, object: &object, reason, before, after };
    Ok(audit_log::add(connection, &deed).await?)
}
