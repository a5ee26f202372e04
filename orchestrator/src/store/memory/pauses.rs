//! Stopping a provider's creates, and the audit log it goes on: one line of rows, each hashed over the one before.

use super::tables::Tables;
use crate::store::audit::{AuditEntry, FIRST_PREVIOUS, chain_hash};
use crate::store::read::PspPause;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// One row of `audit_log`.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    pub audit_id: i64,
    pub actor: String,
    pub action: &'static str,
    pub object: String,
    pub reason: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub created_at: DateTime<Utc>,
    /// The hash of the row before.
    pub previous: String,
    pub hash: String,
}

impl AuditRow {
    /// The fields the hash covers.
    #[must_use]
    pub fn entry(&self) -> AuditEntry<'_> {
        AuditEntry {
            audit_id: self.audit_id,
            actor: &self.actor,
            action: self.action,
            object: &self.object,
            reason: &self.reason,
            before: self.before.as_ref(),
            after: self.after.as_ref(),
            created_at: self.created_at,
        }
    }
}

/// Who asks for what, and why.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) psp: &'a str,
    pub(super) actor: &'a str,
    pub(super) reason: &'a str,
    pub(super) now: DateTime<Utc>,
}

impl Tables {
    pub(super) fn pause_psp(&mut self, asked: Asked<'_>) {
        let pause = PspPause {
            psp: asked.psp.to_owned(),
            actor: asked.actor.to_owned(),
            reason: asked.reason.to_owned(),
            paused_at: asked.now,
        };
        let after = as_json(&pause);
        let before = self.pauses.insert(asked.psp.to_owned(), pause);
        self.record(asked, "psp.pause", before.as_ref().map(as_json), Some(after));
    }

    pub(super) fn resume_psp(&mut self, asked: Asked<'_>) -> bool {
        let Some(before) = self.pauses.remove(asked.psp) else { return false };
        self.record(asked, "psp.resume", Some(as_json(&before)), None);
        true
    }

    fn record(&mut self, asked: Asked<'_>, action: &'static str, before: Option<Value>, after: Option<Value>) {
        let last = self.audit.last();
        let mut row = AuditRow {
            audit_id: last.map_or(1, |last| last.audit_id.saturating_add(1)),
            actor: asked.actor.to_owned(),
            action,
            object: format!("psp/{}", asked.psp),
            reason: asked.reason.to_owned(),
            before,
            after,
            created_at: asked.now,
            previous: last.map_or_else(|| FIRST_PREVIOUS.to_owned(), |last| last.hash.clone()),
            hash: String::new(),
        };
        row.hash = chain_hash(&row.previous, &row.entry());
        self.audit.push(row);
    }
}

fn as_json(pause: &PspPause) -> Value {
    json!({ "actor": pause.actor, "reason": pause.reason })
}
