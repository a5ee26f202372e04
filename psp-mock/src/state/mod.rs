//! Everything the mock knows, behind one short lock: the book (payments, refunds, balance transactions), the keys, the faults,
//! the tallies and what is still to happen.
//!
//! Methods here decide and record; they never wait and never do IO. Time comes in as `now_ms`. Whoever takes the lock first lets
//! `apply_due` carry out what has become due, so that the book never shows a change later than its time.
//!
//! Nothing is kept across a restart: a mock that forgets is a new mock.

pub(crate) mod changes;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod payments;
mod refund_views;
pub(crate) mod refunds;
pub(crate) mod rows;
pub(crate) mod sight;
pub(crate) mod tallies;
pub(crate) mod transactions;

use crate::config::{Config, Webhook};
use crate::faults::Queue;
use crate::ids::Ids;
use changes::Due;
use events::Group;
use rows::{ByName, Rows};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A short string shared between the book and its indexes.
pub(crate) type Id = Arc<str>;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) ids: Ids,
    pub(crate) payments: Rows<payments::Payment>,
    /// Payment intents and charges, each by its own id.
    payment_by_id: ByName<u32>,
    pub(crate) refunds: Rows<refunds::Refund>,
    refund_by_id: ByName<u32>,
    pub(crate) transactions: Rows<transactions::Transaction>,
    transaction_by_id: ByName<u32>,
    pub(crate) keys: keys::Keys,
    pub(crate) faults: Queue,
    pub(crate) tallies: tallies::Tallies,
    /// By time, then by order of planning.
    pub(crate) due: BTreeMap<(i64, u64), Due>,
    planned: u64,
    pub(crate) webhook: Option<Arc<Webhook>>,
    outgoing: mpsc::Sender<Group>,
    reference_key: Box<str>,
    /// The form parameter that carries the reference.
    pub(crate) reference_param: Box<str>,
}

impl State {
    pub(crate) fn new(config: &Config, outgoing: mpsc::Sender<Group>) -> Self {
        Self {
            ids: Ids::new(config.seed),
            payments: Rows::default(),
            payment_by_id: ByName::default(),
            refunds: Rows::default(),
            refund_by_id: ByName::default(),
            transactions: Rows::default(),
            transaction_by_id: ByName::default(),
            keys: keys::Keys::new(config.key_lifetime),
            faults: Queue::new(config.seed, config.fault_rates.clone()),
            tallies: tallies::Tallies::default(),
            due: BTreeMap::new(),
            planned: 0,
            webhook: config.webhook.clone().map(Arc::new),
            outgoing,
            reference_key: config.reference_key.as_str().into(),
            reference_param: format!("metadata[{}]", config.reference_key).into(),
        }
    }

    /// As new, except that the endpoint for events stays.
    pub(crate) fn reset(&mut self, config: &Config) {
        let webhook = self.webhook.take();
        *self = Self::new(config, self.outgoing.clone());
        self.webhook = webhook;
    }

    /// The caller's reference in a refund's metadata.
    pub(crate) fn reference<'a>(&self, metadata: &'a crate::wire::form::Metadata) -> Option<&'a str> {
        metadata.get(&self.reference_key)
    }
}
