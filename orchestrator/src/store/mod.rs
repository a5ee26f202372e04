//! Where intents, payments, attempts, inboxes and the ledger live, and the only place that decides who may write them.
//!
//! Three implementations run behind one trait and one conformance suite: PostgreSQL, SQLite (one host), and memory (the executable
//! specification). A call is one whole transaction; nothing is held open between calls. The database enforces the fences: its
//! triggers refuse a stale or missing stamp whoever sends it, while [`Store::apply`] merely filters rows that lost so that the
//! rest of a batch commits. Decision times come from the database's clock and are returned with the rows they belong to.

pub mod audit;
pub mod change;
pub mod memory;
pub mod migrate;
pub mod postgres;
pub mod read;
pub mod schema;
pub mod sqlite;
pub mod submit;

use async_trait::async_trait;
use change::{Change, InboxResult, NewInboxRow, WriteResult};
use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId, SessionId};
use jobs::refund::intent::IntentFile;
use read::{AccountBalance, Backlog, IntentFilter, IntentPage, Payment, PspPause, Story};
use submit::{ImportResult, NewIntent, NewPayment, SubmitResult};

/// Most rows one call takes or returns; larger inputs are the caller's to split.
pub const BATCH_MAX: usize = 1_000;

/// Refuses a call of more rows than one may take or ask for.
const fn check_count(what: &'static str, count: usize) -> Result<(), StoreError> {
    if count > BATCH_MAX { Err(StoreError::TooMany { what, count, max: BATCH_MAX }) } else { Ok(()) }
}

/// What went wrong when talking to the database, named by what it means for the caller.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No answer in time or no connection. Whether a write took effect is unknown: read it back.
    #[error("the database did not answer: {0}")]
    Unavailable(String),
    /// The database refused the statement: a constraint or trigger of ours, named in the text.
    #[error("the database refused: {0}")]
    Refused(String),
    /// A stored row does not read as what this code knows.
    #[error("a stored row can not be read: {0}")]
    Unreadable(String),
    /// The caller passed more than a call takes.
    #[error("{what}: {count} given, at most {max} in one call")]
    TooMany { what: &'static str, count: usize, max: usize },
}

/// What is due for one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueQuery {
    pub psp: String,
    pub psp_account: String,
    /// False while the provider is paused or clocks disagree: then only lookups and unread inbox rows are due.
    pub creates_allowed: bool,
    pub machine_version: i32,
    /// Sessions the lease service knows to be alive: an open step of any other session is due at once. `None` leaves open
    /// steps out of this query.
    pub live_sessions: Option<Vec<SessionId>>,
    pub limit: usize,
}

/// Rows as they are now, and when now is by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub now: DateTime<Utc>,
    /// PostgreSQL's timeline now; 1 elsewhere.
    pub timeline: i64,
    /// In the order of the ids asked for; unknown ids are left out.
    pub files: Vec<IntentFile>,
}

/// The database, whichever it is.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The database's clock.
    async fn now(&self) -> Result<DateTime<Utc>, StoreError>;

    // Submitting.

    /// Adds payments. One that exists with the same fields is `Same`; with others `Conflict`, and nothing of it changes.
    async fn import_payments(&self, payments: &[NewPayment]) -> Result<Vec<ImportResult>, StoreError>;

    /// Inserts placeholders with their reservations. Locks the payments in id order, then inserts only what fits; results in
    /// the order given. Two intents of one batch see each other's reservations in that order.
    async fn submit(&self, intents: &[NewIntent]) -> Result<Vec<SubmitResult>, StoreError>;

    // Working.

    /// Ids of intents that a worker should look at now, oldest next action first, at most `limit`:
    /// next action due (creates only if allowed), or an open step whose session is not among the live ones, or unread inbox
    /// rows while no live session holds the intent.
    async fn due(&self, query: &DueQuery) -> Result<Vec<IntentId>, StoreError>;

    /// The rows with their attempts, outcomes and unread inbox.
    async fn load(&self, ids: &[IntentId]) -> Result<Loaded, StoreError>;

    /// Writes what won, in one transaction, and tells which lost and why. See [`Change`].
    async fn apply(&self, changes: &[Change]) -> Result<Vec<WriteResult>, StoreError>;

    /// Those of the intents that have unread inbox rows.
    async fn unread_among(&self, ids: &[IntentId]) -> Result<Vec<IntentId>, StoreError>;

    /// Appends to inboxes. A source id seen before is `Duplicate`.
    async fn append_inbox(&self, rows: &[NewInboxRow]) -> Result<Vec<InboxResult>, StoreError>;

    // Operating.

    /// Stops creates of a provider, on record. Pausing a paused one replaces the reason.
    async fn pause_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<(), StoreError>;

    /// Lets creates go on, on record. False if it was not paused.
    async fn resume_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<bool, StoreError>;

    async fn psp_pauses(&self) -> Result<Vec<PspPause>, StoreError>;

    // Looking.

    async fn payment(&self, id: &PaymentId) -> Result<Option<Payment>, StoreError>;

    /// Intents by any id a person may have: intent id, provider's refund id, payment id, provider's payment id, merchant
    /// reference. At most `limit`, newest first.
    async fn find(&self, any_id: &str, limit: usize) -> Result<Vec<IntentId>, StoreError>;

    /// Everything on record about one intent, in order.
    async fn story(&self, id: &IntentId) -> Result<Option<Story>, StoreError>;

    /// A page of intents, newest first (created_at, then intent_id), after the cursor.
    async fn list(&self, filter: &IntentFilter, cursor: Option<&str>, limit: usize) -> Result<IntentPage, StoreError>;

    /// Sums per account, by account name.
    async fn balances(&self) -> Result<Vec<AccountBalance>, StoreError>;

    /// Counts and oldest per state, and rows left alone by reason.
    async fn backlog(&self) -> Result<Backlog, StoreError>;
}
