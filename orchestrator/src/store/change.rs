//! The one write path of an intent: a guarded change, its evidence, and what became of it.
//!
//! Step 2 (install), step 4 (outcome) and steps without a call are the same statement with different fields set. A change wins only if
//! the row is still at `expected_version`, its fence is as `fence_guard` says, the open attempt is the expected one, and the token's epoch is the
//! current one. The winner's row gets version + 1, fence = stamp = token. Everything listed beside it is written in the same
//! transaction or not at all.

use chrono::{DateTime, Utc};
use jobs::ids::{AttemptId, IntentId, SessionId, Token};
use jobs::refund::intent::{AttemptKind, InboxMessage, NextAction};
use jobs::refund::outcome::Outcome;
use jobs::refund::state::State;

/// How the row's fence must compare with the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceGuard {
    /// The first step of a hold: the fence must be below the token.
    Below,
    /// A further step of the same hold: the fence must be the token.
    Equal,
}

/// One intent's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub intent_id: IntentId,
    pub expected_version: i64,
    pub token: Token,
    pub fence_guard: FenceGuard,
    /// The open attempt the row must have, as it was read; `None` means it must have none.
    pub expected_open_attempt: Option<AttemptId>,
    pub state: State,
    pub state_reason: Option<String>,
    pub psp_refund_ref: Option<String>,
    /// Set while a call is open, empty otherwise; both or neither.
    pub holder_session: Option<SessionId>,
    pub open_attempt: Option<AttemptId>,
    pub next_action: NextAction,
    pub next_action_at: Option<DateTime<Utc>>,
    pub rung: i32,
    pub attempt: Option<NewAttempt>,
    pub outcomes: Vec<NewOutcome>,
    pub transfer: Option<TransferKind>,
    pub breaks: Vec<NewBreak>,
    pub inbox_applied: Vec<InboxApplied>,
}

/// A call about to be made, recorded before its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttempt {
    pub attempt_id: AttemptId,
    pub kind: AttemptKind,
    /// Session, token and the version it is installed with come from the change; key and body from the intent.
    pub started_at: DateTime<Utc>,
    pub deadline: DateTime<Utc>,
    pub key_expires_at: Option<DateTime<Utc>>,
    pub absent_until: Option<DateTime<Utc>>,
    pub grounds: Option<String>,
}

/// What an attempt of this intent came to. An attempt has at most one outcome; a second one is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutcome {
    pub attempt_id: AttemptId,
    pub outcome: Outcome,
    pub duration_ms: i64,
    pub late: bool,
}

/// The transfer a change posts; account names, amount and currency follow from the intent, the fence from the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    /// Debit `customer_refunds:CUR`, credit `psp_clearing:PSP:CUR`.
    Post,
    /// The contra entry.
    Reverse,
}

impl TransferKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "post",
            Self::Reverse => "reverse",
        }
    }
}

/// A contradiction found by a step, for finance to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBreak {
    pub class: &'static str,
    pub detail: String,
}

/// An unread inbox row read by this change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxApplied {
    pub inbox_id: i64,
    /// `None` when it took effect, else why it did not.
    pub refused_because: Option<String>,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a lost write means that someone else owns the intent now"]
pub enum WriteResult {
    Written,
    /// The row has accepted a higher token, or the token's epoch is not the current one.
    StaleToken,
    /// The token is good but version or open attempt moved, or an inbox row was already read.
    StateMoved,
}

/// A message for an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInboxRow {
    pub intent_id: IntentId,
    pub source_id: String,
    pub message: InboxMessage,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a message for an unknown intent is not stored"]
pub enum InboxResult {
    Stored { inbox_id: i64 },
    Duplicate,
    UnknownIntent,
}
