//! What people and programs read.

use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId};
use jobs::money::{Currency, Money};
use jobs::refund::intent::{Attempt, InboxRow, Intent};
use jobs::refund::state::State;

/// A payment and its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    pub payment_id: PaymentId,
    pub psp: String,
    pub psp_account: String,
    pub psp_payment_ref: String,
    pub merchant_reference: Option<String>,
    pub captured: Money,
    pub charged_back_minor: i64,
    pub refunded_minor: i64,
    pub reserved_minor: i64,
    pub created_at: DateTime<Utc>,
}

impl Payment {
    /// What may still be refunded; negative when evidence went beyond the capture.
    #[must_use]
    pub const fn refundable_minor(&self) -> i64 {
        self.captured
            .minor
            .saturating_sub(self.charged_back_minor)
            .saturating_sub(self.refunded_minor)
            .saturating_sub(self.reserved_minor)
    }
}

/// One posting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    pub transfer_id: i64,
    pub kind: String,
    pub debit_account: String,
    pub credit_account: String,
    pub amount: Money,
    pub token: jobs::ids::Token,
    pub created_at: DateTime<Utc>,
}

/// A contradiction found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    pub break_id: i64,
    pub class: String,
    pub detail: String,
    pub created_at: DateTime<Utc>,
}

/// An inbox row and what became of it; `applied` is empty while it is unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    pub row: InboxRow,
    pub applied: Option<InboxReading>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxReading {
    pub refused_because: Option<String>,
    /// The intent's version that read it.
    pub version: i64,
    pub applied_at: DateTime<Utc>,
}

/// Everything on record about one intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// The database's clock when it was read.
    pub now: DateTime<Utc>,
    pub intent: Intent,
    pub payment: Payment,
    pub attempts: Vec<Attempt>,
    pub inbox: Vec<InboxEntry>,
    pub transfers: Vec<Transfer>,
    pub breaks: Vec<Break>,
    /// Set while the provider's creates are paused.
    pub psp_pause: Option<PspPause>,
}

/// Why a provider's creates are stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PspPause {
    pub psp: String,
    pub actor: String,
    pub reason: String,
    pub paused_at: DateTime<Utc>,
}

/// Which intents to list; an empty filter lists all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntentFilter {
    pub states: Vec<State>,
    pub psp: Option<String>,
    pub payment_id: Option<PaymentId>,
    pub merchant_reference: Option<String>,
    pub created_from: Option<DateTime<Utc>>,
    pub created_before: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentPage {
    pub intents: Vec<Intent>,
    /// Pass it back for the next page; empty on the last one.
    pub next_cursor: Option<String>,
}

/// Sums over all transfers of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountBalance {
    pub account: String,
    pub currency: Currency,
    pub debit_minor: i64,
    pub credit_minor: i64,
}

/// How much waits, and since when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlog {
    pub states: Vec<StateCount>,
    /// Rows no worker touches: unknown machine version, by count.
    pub unknown_machine_version: i64,
    /// The oldest intent that is neither final nor parked nor has a next action; must be empty.
    pub without_next_action: Option<IntentId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateCount {
    pub state: State,
    pub psp: String,
    pub count: i64,
    /// `created_at` of the oldest.
    pub oldest_at: Option<DateTime<Utc>>,
}
