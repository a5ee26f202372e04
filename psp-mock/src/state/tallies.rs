//! Counters: per intent what was asked and what was done, and totals. This is what tests and drills judge by.

use super::Id;
use super::rows::{ByName, Rows};
use serde::Serialize;

/// Distinct keys told apart per intent; beyond that the count stands still.
const KEYS_MOST: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) totals: Totals,
    by_intent: ByName<u32>,
    /// In the order they were first seen.
    intents: Rows<Tally>,
}

/// Counts over all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Calls under `/v1` with valid credentials.
    pub calls_received: u64,
    /// Calls that create a refund, faulted ones included.
    pub creates_received: u64,
    /// Refunds that exist; those that failed or were canceled later included.
    pub refunds_executed: u64,
    /// Different references seen on creates.
    pub intents: u64,
    /// References with more than one executed refund.
    pub intents_refunded_more_than_once: u64,
    /// Calls answered from a stored result.
    pub replays: u64,
    /// Calls that met a fault.
    pub faults_hit: u64,
    /// Calls received and not yet answered or given up.
    pub calls_in_flight: u64,
    pub slowest_call_ms: u64,
    pub webhooks_delivered: u64,
    /// Events given up after the last retry, or dropped because too many waited.
    pub webhooks_failed: u64,
}

/// Counts of one intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IntentCounters {
    pub intent: String,
    pub creates_received: u32,
    pub refunds_executed: u32,
    /// Different idempotency keys used for its creates; a create without one counts none.
    pub distinct_keys: u32,
}

#[derive(Debug)]
struct Tally {
    intent: Id,
    creates_received: u32,
    refunds: Vec<u32>,
    keys: Vec<u64>,
}

impl Tallies {
    pub(crate) fn create_received(&mut self, intent: Option<&str>, key_hash: Option<u64>) {
        self.totals.creates_received += 1;
        let Some(intent) = intent else { return };
        let tally = self.tally(intent);
        tally.creates_received += 1;
        if let Some(hash) = key_hash
            && !tally.keys.contains(&hash)
            && tally.keys.len() < KEYS_MOST
        {
            tally.keys.push(hash);
        }
    }

    pub(crate) fn refund_executed(&mut self, intent: Option<&str>, refund: u32) {
        self.totals.refunds_executed += 1;
        let Some(intent) = intent else { return };
        let tally = self.tally(intent);
        tally.refunds.push(refund);
        if tally.refunds.len() == 2 {
            self.totals.intents_refunded_more_than_once += 1;
        }
    }

    /// Positions of the refunds executed for an intent.
    pub(crate) fn refunds_of(&self, intent: &str) -> &[u32] {
        self.by_intent.get(intent).map_or(&[], |at| &self.intents[*at].refunds)
    }

    pub(crate) fn of(&self, intent: &str) -> Option<IntentCounters> {
        self.by_intent.get(intent).map(|at| self.intents[*at].counters())
    }

    /// Counters of `limit` intents, from the `from`-th on.
    pub(crate) fn page(&self, from: usize, limit: usize) -> Vec<IntentCounters> {
        self.intents.range(from, from.saturating_add(limit)).map(Tally::counters).collect()
    }

    fn tally(&mut self, intent: &str) -> &mut Tally {
        let at = match self.by_intent.get(intent) {
            Some(at) => *at,
            None => {
                let intent = Id::from(intent);
                let tally =
                    Tally { intent: intent.clone(), creates_received: 0, refunds: Vec::new(), keys: Vec::new() };
                let at = self.intents.push(tally);
                self.by_intent.insert(intent, at);
                self.totals.intents += 1;
                at
            }
        };
        &mut self.intents[at]
    }
}

impl Tally {
    fn counters(&self) -> IntentCounters {
        IntentCounters {
            intent: self.intent.to_string(),
            creates_received: self.creates_received,
            refunds_executed: self.refunds.len() as u32,
            distinct_keys: self.keys.len() as u32,
        }
    }
}
