//! One refund's whole story, as a pure function of what is on record.
//!
//! The view tells facts in the order they were written and ends with two sentences: why the refund waits, and what happens next and when.
//! Times are compared with the database's clock only. Left out: what the PSP was sent and answered word by word.

mod wait;

use super::views::{PaymentView, RefundView};
use crate::store::read::{InboxEntry, Story, Transfer};
use chrono::{DateTime, Utc};
use jobs::refund::capabilities::Capabilities;
use jobs::refund::intent::{Attempt, InboxMessage};
use jobs::refund::outcome::Outcome;
use serde::{Deserialize, Serialize};

/// The story of one refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoryView {
    /// The database's clock when this was read.
    pub now: DateTime<Utc>,
    pub refund: RefundView,
    pub payment: PaymentView,
    pub idempotency_key: String,
    /// The highest token the row has accepted.
    pub fence: String,
    /// Holder of the open call.
    pub holder_session: Option<String>,
    pub attempts: Vec<AttemptView>,
    pub inbox: Vec<InboxView>,
    pub transfers: Vec<TransferView>,
    pub breaks: Vec<BreakView>,
    pub psp_pause: Option<PauseView>,
    /// Set when no worker touches it: `machine_version`, `psp_not_configured` or `psp_paused`.
    pub left_alone: Option<String>,
    pub why_it_waits: String,
    pub what_happens_next: String,
}

/// One physical call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptView {
    pub attempt_id: String,
    pub kind: String,
    pub token: String,
    pub session: String,
    pub started_at: DateTime<Utc>,
    pub deadline: DateTime<Utc>,
    pub key_expires_at: Option<DateTime<Utc>>,
    pub absent_until: Option<DateTime<Utc>>,
    /// Why sending again was allowed.
    pub grounds: Option<String>,
    pub outcome: Option<OutcomeView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeView {
    pub outcome: String,
    /// What it says, in words.
    pub detail: String,
    pub duration_ms: i64,
    pub late: bool,
    pub recorded_at: DateTime<Utc>,
}

/// What someone other than the holder had to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxView {
    pub inbox_id: String,
    pub source_id: String,
    pub kind: String,
    pub detail: String,
    pub received_at: DateTime<Utc>,
    /// `unread`, `applied` or `refused`.
    pub reading: String,
    pub refused_because: Option<String>,
    pub read_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferView {
    pub transfer_id: String,
    pub kind: String,
    pub debit_account: String,
    pub credit_account: String,
    pub amount: String,
    pub amount_minor: String,
    pub currency: String,
    pub token: String,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakView {
    pub break_id: String,
    pub class: String,
    pub detail: String,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseView {
    pub actor: String,
    pub reason: String,
    pub paused_at: DateTime<Utc>,
}

/// Tells the story. No capabilities: this server is not configured for the intent's PSP and account.
#[must_use]
pub fn story_view(story: &Story, capabilities: Option<&Capabilities>) -> StoryView {
    let intent = &story.intent;
    let wait = wait::wait(story, capabilities);
    let pause = story.psp_pause.as_ref();
    StoryView {
        now: story.now,
        refund: RefundView::from(intent),
        payment: PaymentView::from(&story.payment),
        idempotency_key: intent.idempotency_key.clone(),
        fence: intent.fence.to_string(),
        holder_session: intent.holder_session.map(|session| session.to_string()),
        attempts: story.attempts.iter().map(attempt_view).collect(),
        inbox: story.inbox.iter().map(inbox_view).collect(),
        transfers: story.transfers.iter().map(transfer_view).collect(),
        breaks: story
            .breaks
            .iter()
            .map(|found| BreakView {
                break_id: found.break_id.to_string(),
                class: found.class.clone(),
                detail: found.detail.clone(),
                created_at: found.created_at,
            })
            .collect(),
        psp_pause: pause.map(|pause| PauseView {
            actor: pause.actor.clone(),
            reason: pause.reason.clone(),
            paused_at: pause.paused_at,
        }),
        left_alone: wait.left_alone.map(str::to_owned),
        why_it_waits: wait.why,
        what_happens_next: wait.next,
    }
}

fn attempt_view(attempt: &Attempt) -> AttemptView {
    AttemptView {
        attempt_id: attempt.attempt_id.to_string(),
        kind: attempt.kind.as_str().to_owned(),
        token: attempt.token.to_string(),
        session: attempt.session.to_string(),
        started_at: attempt.started_at,
        deadline: attempt.deadline,
        key_expires_at: attempt.key_expires_at,
        absent_until: attempt.absent_until,
        grounds: attempt.grounds.clone(),
        outcome: attempt.outcome.as_ref().map(|recorded| OutcomeView {
            outcome: recorded.outcome.as_str().to_owned(),
            detail: outcome_in_words(&recorded.outcome),
            duration_ms: recorded.duration_ms,
            late: recorded.late,
            recorded_at: recorded.recorded_at,
        }),
    }
}

/// What an outcome says, without its name.
pub(super) fn outcome_in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted { refund } => refund_in_words(refund),
        Outcome::Rejected { rejection } => format!("{}: {}", rejection.code, rejection.message),
        Outcome::NotExecuted { reason, retry_after_ms: Some(ms) } => format!("{reason}, come back after {ms} ms"),
        Outcome::NotExecuted { reason, retry_after_ms: None } => reason.clone(),
        Outcome::Found { refunds } => refunds.iter().map(refund_in_words).collect::<Vec<_>>().join("; "),
        Outcome::Absent => "a complete reading shows no refund with our reference".to_owned(),
        Outcome::Unknown { reason } => reason.clone(),
    }
}

fn refund_in_words(refund: &jobs::refund::outcome::PspRefund) -> String {
    let status = format!("{:?}", refund.status).to_lowercase();
    let reason = refund.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{} {status} {}{reason}", refund.psp_refund_ref, refund.amount)
}

fn inbox_view(entry: &InboxEntry) -> InboxView {
    let applied = entry.applied.as_ref();
    let refused_because = applied.and_then(|reading| reading.refused_because.clone());
    let reading = match (applied, &refused_because) {
        (None, _) => "unread",
        (Some(_), None) => "applied",
        (Some(_), Some(_)) => "refused",
    };
    InboxView {
        inbox_id: entry.row.inbox_id.to_string(),
        source_id: entry.row.source_id.clone(),
        kind: entry.row.message.as_str().to_owned(),
        detail: message_in_words(&entry.row.message),
        received_at: entry.row.received_at,
        reading: reading.to_owned(),
        refused_because,
        read_at: applied.map(|reading| reading.applied_at),
    }
}

fn message_in_words(message: &InboxMessage) -> String {
    match message {
        InboxMessage::Cancel { actor, reason } | InboxMessage::Replay { actor, reason } => {
            format!("by {actor}: {reason}")
        }
        InboxMessage::LateAnswer { attempt_id, outcome, duration_ms } => {
            format!("attempt {attempt_id} after {duration_ms} ms: {} {}", outcome.as_str(), outcome_in_words(outcome))
        }
        InboxMessage::ProviderNotice { event_id, event_type } => format!("{event_type} ({event_id})"),
    }
}

fn transfer_view(transfer: &Transfer) -> TransferView {
    TransferView {
        transfer_id: transfer.transfer_id.to_string(),
        kind: transfer.kind.clone(),
        debit_account: transfer.debit_account.clone(),
        credit_account: transfer.credit_account.clone(),
        amount: transfer.amount.to_decimal(),
        amount_minor: transfer.amount.minor.to_string(),
        currency: transfer.amount.currency.to_string(),
        token: transfer.token.to_string(),
        created_at: transfer.created_at,
    }
}
