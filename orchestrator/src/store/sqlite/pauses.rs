//! Stopping a provider's creates, on record: the row and its line in the audit log are one transaction.
//!
//! The audit log is one line of rows, each hashed over the one before; the one writer keeps it from forking.

use super::connect::store_error;
use super::looking::pauses;
use super::rows;
use super::statement::now_micros;
use crate::store::StoreError;
use crate::store::audit::{self, AuditEntry};
use crate::store::read::PspPause;
use serde_json::{Value, json};
use sqlx::SqliteConnection;

/// Who does what to which provider, and why.
#[derive(Debug)]
pub(super) struct Deed {
    psp: String,
    actor: String,
    reason: String,
}

impl Deed {
    pub(super) fn new(psp: &str, actor: &str, reason: &str) -> Self {
        Self { psp: psp.to_owned(), actor: actor.to_owned(), reason: reason.to_owned() }
    }
}

const PAUSE_SET: &str = "
    INSERT INTO psp_pauses (psp, actor, reason, paused_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (psp) DO UPDATE SET actor = excluded.actor, reason = excluded.reason, paused_at = excluded.paused_at";

const PAUSE_REMOVE: &str = "DELETE FROM psp_pauses WHERE psp = ?1";

/// Stops creates; a paused provider gets the new reason.
pub(super) async fn pause(connection: &mut SqliteConnection, deed: Deed) -> Result<(), StoreError> {
    let now = now_micros(connection).await?;
    let before = pauses(connection, Some(deed.psp.clone())).await?.pop();
    sqlx::query(PAUSE_SET)
        .bind(&deed.psp)
        .bind(&deed.actor)
        .bind(&deed.reason)
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let after = json!({ "actor": deed.actor, "reason": deed.reason });
    add_audit(connection, now, &deed, "psp.pause", (before.as_ref().map(as_json), Some(after))).await
}

/// Lets creates go on; false, and nothing on record, if they were not stopped.
pub(super) async fn resume(connection: &mut SqliteConnection, deed: Deed) -> Result<bool, StoreError> {
    let now = now_micros(connection).await?;
    let Some(before) = pauses(connection, Some(deed.psp.clone())).await?.pop() else { return Ok(false) };
    sqlx::query(PAUSE_REMOVE).bind(&deed.psp).execute(&mut *connection).await.map_err(store_error)?;
    add_audit(connection, now, &deed, "psp.resume", (Some(as_json(&before)), None)).await?;
    Ok(true)
}

fn as_json(pause: &PspPause) -> Value {
    json!({ "actor": pause.actor, "reason": pause.reason })
}

const AUDIT_LAST: &str = "SELECT audit_id, hash FROM audit_log ORDER BY audit_id DESC LIMIT 1";

const AUDIT_ADD: &str = "
    INSERT INTO audit_log (audit_id, actor, action, object, reason, before, after, created_at, previous, hash)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 WHERE NOT EXISTS (SELECT 1 FROM audit_log WHERE audit_id = ?1)";

async fn add_audit(
    connection: &mut SqliteConnection,
    now: i64,
    deed: &Deed,
    action: &'static str,
    (before, after): (Option<Value>, Option<Value>),
) -> Result<(), StoreError> {
    let last: Option<(i64, String)> =
        sqlx::query_as(AUDIT_LAST).fetch_optional(&mut *connection).await.map_err(store_error)?;
    let (last_id, previous) = last.unwrap_or_else(|| (0, audit::FIRST_PREVIOUS.to_owned()));
    let object = format!("psp/{}", deed.psp);
    let entry = AuditEntry {
        audit_id: last_id + 1,
        actor: &deed.actor,
        action,
        object: &object,
        reason: &deed.reason,
        before: before.as_ref(),
        after: after.as_ref(),
        created_at: rows::time("now", now)?,
    };
    let hash = audit::chain_hash(&previous, &entry);
    sqlx::query(AUDIT_ADD)
        .bind(entry.audit_id)
        .bind(entry.actor)
        .bind(action)
        .bind(&object)
        .bind(entry.reason)
        .bind(before.as_ref().map(Value::to_string))
        .bind(after.as_ref().map(Value::to_string))
        .bind(now)
        .bind(previous)
        .bind(hash)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}
