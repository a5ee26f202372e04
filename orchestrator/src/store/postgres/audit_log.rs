//! Adding to the audit log on PostgreSQL, inside the transaction of what is recorded.
//!
//! The log is one line of rows, each hashed over the one before. An advisory lock makes its writers queue; should a writer forget it,
//! `audit_log_previous_key` refuses the fork.

use crate::store::audit::{self, AuditEntry};
use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;
use sqlx::{Error, query, query_as};

/// The number is that of this log among advisory locks; nothing else here uses one.
const AUDIT_LOCK: &str = "SELECT pg_advisory_xact_lock(7237111)";

const AUDIT_LAST: &str = "
    SELECT clock_timestamp(), l.audit_id, l.hash
    FROM (SELECT 1) AS one LEFT JOIN (SELECT audit_id, hash FROM audit_log ORDER BY audit_id DESC LIMIT 1) AS l ON true";

const AUDIT_ADD: &str = "
    INSERT INTO audit_log (audit_id, actor, action, object, reason, before, after, created_at, previous, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// What happened; its place in the log and its time are the log's.
#[derive(Debug)]
pub(super) struct Deed<'a> {
    pub(super) actor: &'a str,
    pub(super) action: &'static str,
    pub(super) object: &'a str,
    pub(super) reason: &'a str,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// Waits for the other writers, until the end of the transaction. Taken before what is recorded is read.
pub(super) async fn lock(connection: &mut PgConnection) -> Result<(), Error> {
    query(AUDIT_LOCK).execute(connection).await?;
    Ok(())
}

/// Adds a row; the caller holds the lock.
pub(super) async fn add(connection: &mut PgConnection, deed: &Deed<'_>) -> Result<(), Error> {
    let (created_at, last_id, last_hash): (DateTime<Utc>, Option<i64>, Option<String>) =
        query_as(AUDIT_LAST).fetch_one(&mut *connection).await?;
    let audit_id = last_id.unwrap_or(0) + 1;
    let previous = last_hash.unwrap_or_else(|| audit::FIRST_PREVIOUS.to_owned());
    let entry = AuditEntry {
        audit_id,
        actor: deed.actor,
        action: deed.action,
        object: deed.object,
        reason: deed.reason,
        before: deed.before.as_ref(),
        after: deed.after.as_ref(),
        created_at,
    };
    let hash = audit::chain_hash(&previous, &entry);
    query(AUDIT_ADD)
        .bind(audit_id)
        .bind(entry.actor)
        .bind(entry.action)
        .bind(entry.object)
        .bind(entry.reason)
        .bind(entry.before.map(Json))
        .bind(entry.after.map(Json))
        .bind(created_at)
        .bind(previous)
        .bind(hash)
        .execute(connection)
        .await?;
    Ok(())
}
