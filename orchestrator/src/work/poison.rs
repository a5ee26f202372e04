//! Rows that the database refuses again and again.
//!
//! A refund whose write fails five times is parked in a write that touches only state and reason. The count lives in memory: a restart
//! starts it anew, which only delays the parking.

use crate::store::StoreError;
use jobs::ids::IntentId;
use jobs::refund::decision::Decision;
use jobs::refund::intent::Intent;
use jobs::refund::plan::{Plan, WritePlan};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// After so many failures a refund is parked.
const FAILURES_MAX: u32 = 5;
/// Most refunds remembered; more failing at once is an outage, not poison.
const REMEMBERED_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Poison(Mutex<BTreeMap<IntentId, (u32, String)>>);

impl Poison {
    /// Counts a failure; returns how many there were.
    pub(super) fn failed(&self, intent_id: &IntentId, error: &StoreError) -> u32 {
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.len() >= REMEMBERED_MAX && !failing.contains_key(intent_id) {
            return 1;
        }
        let entry = failing.entry(intent_id.clone()).or_default();
        entry.0 += 1;
        entry.1 = error.to_string();
        entry.0
    }

    pub(super) fn is_failing(&self, intent_id: &IntentId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(intent_id)
    }

    /// The plan that parks it, once it failed too often.
    pub(super) fn parks(&self, intent: &Intent) -> Option<Plan> {
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
