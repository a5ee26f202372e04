//! Messages of others than the holder.

use super::tables::{Tables, next_id};
use crate::store::change::{InboxResult, NewInboxRow};
use crate::store::read::InboxEntry;
use chrono::{DateTime, Utc};
use jobs::refund::intent::InboxRow;

impl Tables {
    pub(super) fn append_inbox(&mut self, rows: &[NewInboxRow], now: DateTime<Utc>) -> Vec<InboxResult> {
        rows.iter().map(|new| self.append_one(new, now)).collect()
    }

    fn append_one(&mut self, new: &NewInboxRow, now: DateTime<Utc>) -> InboxResult {
        if self.inbox_sources.contains(&new.source_id) {
            return InboxResult::Duplicate;
        }
        let Some(file) = self.intents.get_mut(&new.intent_id) else { return InboxResult::UnknownIntent };
        self.inbox_sources.insert(new.source_id.clone());
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
}
