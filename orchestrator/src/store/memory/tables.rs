//! The rows of the memory store, by the keys the databases have indexes on.
//!
//! Whatever belongs to one intent lies in one file, so that a transaction on an intent touches one place.

use super::epochs::Epoch;
use super::pauses::AuditRow;
use crate::store::StoreError;
use crate::store::read::{Break, InboxEntry, Payment, PspPause, Transfer};
use jobs::ids::{AttemptId, IntentId, PaymentId, Token};
use jobs::money::Money;
use jobs::refund::intent::{Attempt, Intent};
use jobs::refund::state::CountsAs;
use std::collections::{BTreeMap, BTreeSet};

/// An intent's columns with what its last writer showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentRow {
    pub intent: Intent,
    pub stamp: Token,
    pub stamp_version: i64,
}

/// All rows of one intent. Evidence is only ever pushed.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) row: IntentRow,
    pub(super) attempts: Vec<Attempt>,
    pub(super) inbox: Vec<InboxEntry>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) breaks: Vec<Break>,
}

impl File {
    pub(super) const fn new(row: IntentRow) -> Self {
        Self { row, attempts: Vec::new(), inbox: Vec::new(), transfers: Vec::new(), breaks: Vec::new() }
    }

    pub(super) fn has_unread(&self) -> bool {
        self.inbox.iter().any(|entry| entry.applied.is_none())
    }
}

/// What keeps an idempotency key from serving two intents: provider, account, key.
pub(super) type KeyScope = (String, String, String);

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) payments: BTreeMap<PaymentId, Payment>,
    /// Provider, account and the provider's id of a payment.
    pub(super) psp_payments: BTreeSet<KeyScope>,
    pub(super) intents: BTreeMap<IntentId, File>,
    pub(super) idempotency_keys: BTreeSet<KeyScope>,
    pub(super) attempts: BTreeMap<AttemptId, IntentId>,
    pub(super) inbox_sources: BTreeSet<String>,
    pub(super) pauses: BTreeMap<String, PspPause>,
    pub(super) epochs: Vec<Epoch>,
    pub(super) audit: Vec<AuditRow>,
    pub(super) last_inbox_id: i64,
    pub(super) last_transfer_id: i64,
    pub(super) last_break_id: i64,
}

/// The next value of an identity column.
pub(super) const fn next_id(last: &mut i64) -> i64 {
    *last = last.saturating_add(1);
    *last
}

/// Moves an amount between a payment's counters; they follow from states and from nothing else.
pub(super) fn move_counters(
    payment: &mut Payment,
    amount: Money,
    from: CountsAs,
    to: CountsAs,
) -> Result<(), StoreError> {
    for (counts_as, sign) in [(from, -1), (to, 1)] {
        let (counter, constraint) = match counts_as {
            CountsAs::Reserved => (&mut payment.reserved_minor, "payments_reserved_not_negative"),
            CountsAs::Refunded => (&mut payment.refunded_minor, "payments_refunded_not_negative"),
            CountsAs::Nothing => continue,
        };
        let moved = amount.minor.checked_mul(sign).and_then(|delta| counter.checked_add(delta));
        *counter = moved.filter(|value| *value >= 0).ok_or_else(|| StoreError::Refused(constraint.to_owned()))?;
    }
    Ok(())
}
