//! Where a page ended. Callers pass it back and need not understand it.

use crate::store::StoreError;
use chrono::{DateTime, Utc};
use jobs::ids::IntentId;
use jobs::refund::intent::Intent;
use std::fmt;

/// The last intent of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    created_at: DateTime<Utc>,
    intent_id: IntentId,
}

impl Cursor {
    pub(super) fn at(intent: &Intent) -> Self {
        Self { created_at: intent.created_at, intent_id: intent.intent_id.clone() }
    }

    pub(super) fn read(text: &str) -> Result<Self, StoreError> {
        let read = || {
            let (micros, id) = text.split_once('.')?;
            let created_at = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
            Some(Self { created_at, intent_id: IntentId::new(id).ok()? })
        };
        read().ok_or_else(|| StoreError::Refused(format!("{text:?} is no cursor")))
    }

    /// Whether the intent belongs on a later page; pages go from new to old.
    pub(super) fn is_before(&self, intent: &Intent) -> bool {
        (intent.created_at, &intent.intent_id) < (self.created_at, &self.intent_id)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created_at.timestamp_micros(), self.intent_id)
    }
}
