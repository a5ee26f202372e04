//! What others than the holder write: inbox rows, and pauses with their audit.

use super::tables::{AuditEntry, Tables, next_id};
use crate::store::change::{InboxResult, NewInboxRow};
use crate::store::read::{InboxEntry, PspPause};
use chrono::{DateTime, Utc};
use jobs::refund::intent::InboxRow;

impl Tables {
    pub(super) fn append_inbox(&mut self, rows: &[NewInboxRow], now: DateTime<Utc>) -> Vec<InboxResult> {
        rows.iter().map(|new| self.append_one(new, now)).collect()
    }

    fn append_one(&mut self, new: &NewInboxRow, now: DateTime<Utc>) -> InboxResult {
        let Some(file) = self.intents.get_mut(&new.intent_id) else { return InboxResult::UnknownIntent };
        if !self.inbox_sources.insert(new.source_id.clone()) {
            return InboxResult::Duplicate;
        }
        let inbox_id = next_id(&mut self.last_inbox_id);
        let row = InboxRow {
            inbox_id,
            intent_id: new.intent_id.clone(),
            source_id: new.source_id.clone(),
            message: new.message.clone(),
            received_at: now,
        };
        file.inbox.push(InboxEntry { row, applied: None });
        InboxResult::Stored { inbox_id }
    }

    pub(super) fn pause_psp(&mut self, psp: &str, actor: &str, reason: &str, now: DateTime<Utc>) {
        let (psp, actor, reason) = (psp.to_owned(), actor.to_owned(), reason.to_owned());
        self.record("psp.pause", &psp, &actor, &reason, now);
        self.pauses.insert(psp.clone(), PspPause { psp, actor, reason, paused_at: now });
    }

    pub(super) fn resume_psp(&mut self, psp: &str, actor: &str, reason: &str, now: DateTime<Utc>) -> bool {
        if self.pauses.remove(psp).is_none() {
            return false;
        }
        self.record("psp.resume", psp, actor, reason, now);
        true
    }

    fn record(&mut self, action: &'static str, object: &str, actor: &str, reason: &str, now: DateTime<Utc>) {
        self.audit.push(AuditEntry {
            actor: actor.to_owned(),
            action,
            object: object.to_owned(),
            reason: reason.to_owned(),
            created_at: now,
        });
    }
}
