//! Why a replica takes no work, as told by whoever notices.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Reasons by topic; each loop owns its topic and sets or clears it.
#[derive(Debug, Default)]
pub struct Readiness {
    reasons: Mutex<BTreeMap<&'static str, String>>,
}

impl Readiness {
    /// Not ready, for this reason; replaces the topic's former one.
    pub fn set(&self, topic: &'static str, reason: impl Into<String>) {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).insert(topic, reason.into());
    }

    pub fn clear(&self, topic: &'static str) {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }

    /// All reasons, by topic; empty when ready.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
