//! Rows that the database refuses again and again, and rows that can not be read.
//!
//! A refund whose write fails five times is parked in a write that touches only state and reason. The count lives in memory: a restart
//! starts it anew, which only delays the parking. What can not be read can not be planned either, so it is left alone, counted and
//! tried again: the next release of this program may know what it is.

use crate::store::StoreError;
use jobs::ids::IntentId;
use jobs::refund::decision::Decision;
use jobs::refund::intent::Intent;
use jobs::refund::plan::{Plan, WritePlan};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// After so many failures a refund is parked.
const FAILURES_MAX: u32 = 5;
/// Most refunds remembered; more failing at once is an outage, not poison.
const REMEMBERED_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Poison {
    refused: Mutex<BTreeMap<IntentId, (u32, String)>>,
    unreadable: Mutex<BTreeSet<IntentId>>,
}

impl Poison {
    /// Counts a failure; returns how many there were.
    pub(super) fn failed(&self, intent_id: &IntentId, error: &StoreError) -> u32 {
        let mut failing = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.len() >= REMEMBERED_MAX && !failing.contains_key(intent_id) {
            return 1;
        }
        let entry = failing.entry(intent_id.clone()).or_default();
        entry.0 += 1;
        entry.1 = error.to_string();
        entry.0
    }

    pub(super) fn is_failing(&self, intent_id: &IntentId) -> bool {
        self.is_unreadable(intent_id)
            || self.refused.lock().unwrap_or_else(PoisonError::into_inner).contains_key(intent_id)
    }

    /// Remembers whether it could be read; returns whether that is news.
    pub(super) fn set_unreadable(&self, intent_id: &IntentId, unreadable: bool) -> bool {
        let mut known = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if !unreadable {
            return known.remove(intent_id);
        }
        known.len() < REMEMBERED_MAX && known.insert(intent_id.clone())
    }

    pub(super) fn is_unreadable(&self, intent_id: &IntentId) -> bool {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).contains(intent_id)
    }

    pub(super) fn unreadable(&self) -> usize {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The plan that parks it, once it failed too often.
    pub(super) fn parks(&self, intent: &Intent) -> Option<Plan> {
        let mut failing = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let (failures, _) = failing.get(&intent.intent_id)?;
        if *failures < FAILURES_MAX {
            return None;
        }
        let (failures, error) = failing.remove(&intent.intent_id)?;
        let mut decision = Decision::unchanged(intent);
        decision.park(format!("write_failed: {failures} times: {error}"));
        Some(Plan::Write(Box::new(WritePlan { decision, readings: Vec::new(), late_outcomes: Vec::new() })))
    }
}
