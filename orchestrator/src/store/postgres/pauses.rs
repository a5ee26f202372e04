//! Stopping a provider's creates, on record: the row and its line in the audit log are one transaction.
//!
//! The audit log is one line of rows, each hashed over the one before. An advisory lock makes its writers queue; should a writer
//! forget it, `audit_log_previous_key` refuses the fork.

use super::call::Calls;
use super::failure::Failure;
use crate::store::StoreError;
use crate::store::audit::{self, AuditEntry};
use crate::store::read::PspPause;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;
use sqlx::{Row, query};
use std::sync::Arc;

const PAUSES: &str = "SELECT psp, actor, reason, paused_at FROM psp_pauses ORDER BY psp";

const PAUSE_BY_PSP: &str = "SELECT psp, actor, reason, paused_at FROM psp_pauses WHERE psp = $1";

const PAUSE_SET: &str = "
    INSERT INTO psp_pauses (psp, actor, reason) VALUES ($1, $2, $3)
    ON CONFLICT (psp) DO UPDATE SET actor = excluded.actor, reason = excluded.reason, paused_at = excluded.paused_at";

const PAUSE_REMOVE: &str = "DELETE FROM psp_pauses WHERE psp = $1";

/// The number is that of this log among advisory locks; nothing else here uses one.
const AUDIT_LOCK: &str = "SELECT pg_advisory_xact_lock(7237111)";

const AUDIT_LAST: &str = "
    SELECT clock_timestamp(), l.audit_id, l.hash
    FROM (SELECT 1) AS one LEFT JOIN (SELECT audit_id, hash FROM audit_log ORDER BY audit_id DESC LIMIT 1) AS l ON true";

const AUDIT_ADD: &str = "
    INSERT INTO audit_log (audit_id, actor, action, object, reason, before, after, created_at, previous, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

pub(super) async fn pause(calls: &Calls, psp: &str, actor: &str, reason: &str) -> Result<(), StoreError> {
    let asked = Arc::new([psp.to_owned(), actor.to_owned(), reason.to_owned()]);
    calls
        .write("pause a provider", move |connection| {
            let asked = Arc::clone(&asked);
            Box::pin(async move {
                let [psp, actor, reason] = &*asked;
                query(AUDIT_LOCK).execute(&mut *connection).await?;
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
                query(AUDIT_LOCK).execute(&mut *connection).await?;
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
    let last = query(AUDIT_LAST).fetch_one(&mut *connection).await?;
    let created_at: DateTime<Utc> = last.try_get(0)?;
    let audit_id = last.try_get::<Option<i64>, _>(1)?.unwrap_or(0) + 1;
    let previous = last.try_get::<Option<String>, _>(2)?.unwrap_or_else(|| audit::FIRST_PREVIOUS.to_owned());
    let object = format!("psp/{psp}");
    let entry = AuditEntry {
        audit_id,
        actor,
        action,
        object: &object,
        reason,
        before: before.as_ref(),
        after: after.as_ref(),
        created_at,
    };
    let hash = audit::chain_hash(&previous, &entry);
    query(AUDIT_ADD)
        .bind(audit_id)
        .bind(actor)
        .bind(action)
        .bind(&object)
        .bind(reason)
        .bind(before.as_ref().map(Json))
        .bind(after.as_ref().map(Json))
        .bind(created_at)
        .bind(previous)
        .bind(hash)
        .execute(connection)
        .await?;
    Ok(())
}
