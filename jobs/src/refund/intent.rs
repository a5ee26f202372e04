//! What is stored of one refund: the intent, its attempts with their outcomes, and its inbox.
//!
//! These are the facts the rules plan from. They hold across a crash because each is written in the same transaction as the
//! state it belongs to. Bodies of calls are kept, bodies of answers are not: their meaning is, as an [`Outcome`].

use super::outcome::Outcome;
use super::state::State;
use crate::ids::{AttemptId, IntentId, PaymentId, SessionId, Token};
use crate::money::Money;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The machine version this code runs. A row with another one is left alone.
pub const MACHINE_VERSION: i32 = 1;

/// What the next holder will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    Create,
    Lookup,
    /// Final, or parked: nothing is planned.
    None,
}

impl NextAction {
    pub const ALL: [Self; 3] = [Self::Create, Self::Lookup, Self::None];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Lookup => "lookup",
            Self::None => "none",
        }
    }

    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

/// One row of `refund_intents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub intent_id: IntentId,
    pub payment_id: PaymentId,
    /// Provider, account and payment as they were at submit: later holders use these, never their own configuration.
    pub psp: String,
    pub psp_account: String,
    pub psp_payment_ref: String,
    pub merchant_reference: Option<String>,
    /// Why the customer gets the money back, in the caller's words.
    pub refund_reason: Option<String>,
    pub amount: Money,
    pub idempotency_key: String,
    /// The exact bytes of every create of this intent.
    pub create_body: Vec<u8>,
    pub machine_version: i32,
    pub state: State,
    /// Why it is in this state: the pending reason, the refusal's code, the ground for parking.
    pub state_reason: Option<String>,
    pub psp_refund_ref: Option<String>,
    pub version: i64,
    pub fence: Token,
    /// The session of the holder while a call is open; empty between steps.
    pub holder_session: Option<SessionId>,
    pub open_attempt: Option<AttemptId>,
    pub next_action: NextAction,
    pub next_action_at: Option<DateTime<Utc>>,
    /// How far up its ladder it is.
    pub rung: i32,
    /// PostgreSQL's timeline at the last write; 1 on SQLite.
    pub timeline: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptKind {
    Create,
    Lookup,
}

impl AttemptKind {
    pub const ALL: [Self; 2] = [Self::Create, Self::Lookup];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Lookup => "lookup",
        }
    }

    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One row of `refund_attempts`, with its row of `refund_outcomes` if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub attempt_id: AttemptId,
    pub intent_id: IntentId,
    pub kind: AttemptKind,
    pub token: Token,
    pub session: SessionId,
    /// The intent's version this attempt was installed with; orders the attempts of an intent.
    pub installed_version: i64,
    pub started_at: DateTime<Utc>,
    /// When the caller aborts the call.
    pub deadline: DateTime<Utc>,
    /// When the provider may forget the key of the intent's earliest create that is not proved not executed.
    pub key_expires_at: Option<DateTime<Utc>>,
    /// A reading begun before this can not prove absence. Set on creates.
    pub absent_until: Option<DateTime<Utc>>,
    /// Why a resend was allowed; set on resends only.
    pub grounds: Option<String>,
    pub outcome: Option<RecordedOutcome>,
}

/// One row of `refund_outcomes`: at most one for an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedOutcome {
    pub outcome: Outcome,
    pub duration_ms: i64,
    /// It came through the inbox because its caller could no longer write the state.
    pub late: bool,
    pub recorded_at: DateTime<Utc>,
}

/// One row of `intent_inbox`: what someone other than the holder has to say about an intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxRow {
    pub inbox_id: i64,
    pub intent_id: IntentId,
    /// Unique: the same message twice is one row.
    pub source_id: String,
    pub message: InboxMessage,
    pub received_at: DateTime<Utc>,
}

/// What an inbox row says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum InboxMessage {
    /// Call it off, if no create was started.
    Cancel { actor: String, reason: String },
    /// Look at it now.
    Replay { actor: String, reason: String },
    /// The answer to an attempt whose caller could not write the state.
    LateAnswer { attempt_id: AttemptId, outcome: Outcome, duration_ms: i64 },
    /// The provider says something happened; the lookup decides what.
    ProviderNotice { event_id: String, event_type: String },
}

impl InboxMessage {
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancel",
            Self::Replay { .. } => "replay",
            Self::LateAnswer { .. } => "late_answer",
            Self::ProviderNotice { .. } => "provider_notice",
        }
    }
}

/// Everything the rules look at for one intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentFile {
    pub intent: Intent,
    /// In order of `installed_version`.
    pub attempts: Vec<Attempt>,
    /// Unread rows only, in order of arrival.
    pub unread: Vec<InboxRow>,
}
