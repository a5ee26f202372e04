//! Refunds in any situation, in a line each; and plans and decisions as one short text.

use chrono::{DateTime, TimeDelta, Utc};
use jobs::ids::{AttemptId, IntentId, PaymentId, SessionId, Token};
use jobs::money::Money;
use jobs::refund::capabilities::{Capabilities, LookupMode};
use jobs::refund::decision::Decision;
use jobs::refund::intent::{
    Attempt, AttemptKind, InboxMessage, InboxRow, Intent, IntentFile, MACHINE_VERSION, NextAction, RecordedOutcome,
};
use jobs::refund::outcome::{Outcome, PspRefund, Rejection, RejectionClass};
use jobs::refund::plan::{Circumstances, Plan};
use jobs::refund::resend::Now;
use jobs::refund::state::{Effect, PspStatus, State};
use std::fmt::Write;
use uuid::Uuid;

pub(crate) const MINUTE: i64 = 60;
pub(crate) const HOUR: i64 = 3_600;
pub(crate) const DAY: i64 = 86_400;

/// So many seconds after the refund was submitted.
pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

pub(crate) fn seconds(time: DateTime<Utc>) -> i64 {
    (time - at(0)).num_seconds()
}

pub(crate) fn money(minor: i64, currency: &str) -> Money {
    Money { minor, currency: currency.parse().unwrap() }
}

pub(crate) fn attempt_id(number: u128) -> AttemptId {
    AttemptId(Uuid::from_u128(number))
}

pub(crate) fn now(database: i64) -> Now {
    Now { database: at(database), local: at(database) }
}

pub(crate) fn circumstances(database: i64) -> Circumstances {
    Circumstances { now: now(database), timeline: 1, creates_allowed: true }
}

pub(crate) fn stripe() -> Capabilities {
    Capabilities::stripe()
}

pub(crate) fn without_lookup() -> Capabilities {
    Capabilities { lookup: LookupMode::None, ..stripe() }
}

pub(crate) fn without_key() -> Capabilities {
    Capabilities { key_lifetime: None, ..stripe() }
}

// Outcomes.

pub(crate) fn shown(reference: &str, minor: i64, currency: &str, status: PspStatus) -> PspRefund {
    PspRefund { psp_refund_ref: reference.to_owned(), status, amount: money(minor, currency), reason: None }
}

pub(crate) fn accepted(status: PspStatus) -> Outcome {
    Outcome::Accepted { refund: shown("re_1", 2285, "EUR", status) }
}

pub(crate) fn found(status: PspStatus) -> Outcome {
    Outcome::Found { refunds: vec![shown("re_1", 2285, "EUR", status)] }
}

pub(crate) fn found_all(refunds: &[PspRefund]) -> Outcome {
    Outcome::Found { refunds: refunds.to_vec() }
}

fn rejection(code: &str, class: RejectionClass, stored_under_key: bool) -> Outcome {
    let (code, message) = (code.to_owned(), "as the provider says".to_owned());
    Outcome::Rejected { rejection: Rejection { code, message, stored_under_key, class } }
}

pub(crate) fn rejected_stored() -> Outcome {
    rejection("disputed", RejectionClass::Final, true)
}

pub(crate) fn rejected_not_stored() -> Outcome {
    rejection("low_balance", RejectionClass::Final, false)
}

pub(crate) fn already_refunded() -> Outcome {
    rejection("already_refunded", RejectionClass::AlreadyRefunded, true)
}

pub(crate) fn key_reused() -> Outcome {
    rejection("idempotency_error", RejectionClass::KeyReused, false)
}

pub(crate) fn not_executed() -> Outcome {
    Outcome::NotExecuted { reason: "429".to_owned(), retry_after_ms: None }
}

pub(crate) fn not_executed_for(retry_after_ms: u64) -> Outcome {
    Outcome::NotExecuted { reason: "429".to_owned(), retry_after_ms: Some(retry_after_ms) }
}

pub(crate) fn unknown() -> Outcome {
    Outcome::Unknown { reason: "timeout".to_owned() }
}

/// A refund of 22.85 EUR, just submitted.
pub(crate) fn refund() -> Refund {
    let intent = Intent {
        intent_id: IntentId::new("i-1").unwrap(),
        payment_id: PaymentId::new("p-1").unwrap(),
        psp: "acme".to_owned(),
        psp_account: "main".to_owned(),
        psp_payment_ref: "pi_1".to_owned(),
        merchant_reference: None,
        refund_reason: None,
        amount: money(2285, "EUR"),
        idempotency_key: "key-of-i-1".to_owned(),
        create_body: b"body".to_vec(),
        machine_version: MACHINE_VERSION,
        state: State::Recorded,
        state_reason: None,
        psp_refund_ref: None,
        version: 1,
        fence: Token::NONE,
        holder_session: None,
        open_attempt: None,
        next_action: NextAction::Create,
        next_action_at: Some(at(0)),
        rung: 0,
        timeline: 1,
        created_at: at(0),
        updated_at: at(0),
    };
    Refund { file: IntentFile { intent, attempts: Vec::new(), unread: Vec::new() } }
}

/// A refund in `state`; its next action is a lookup at once, or none if it is final or parked.
pub(crate) fn refund_in(state: State) -> Refund {
    let mut refund = refund();
    refund.file.intent.state = state;
    if state.is_final() || state == State::NeedsReview {
        refund.file.intent.next_action = NextAction::None;
        refund.file.intent.next_action_at = None;
    } else if state != State::Recorded {
        refund.file.intent.next_action = NextAction::Lookup;
    }
    if state == State::NeedsReview {
        refund.file.intent.state_reason = Some("parked: before".to_owned());
    }
    refund
}

#[derive(Debug, Clone)]
pub(crate) struct Refund {
    pub(crate) file: IntentFile,
}

impl Refund {
    pub(crate) fn next(mut self, action: NextAction, seconds: i64) -> Self {
        self.file.intent.next_action = action;
        self.file.intent.next_action_at = Some(at(seconds));
        self
    }

    pub(crate) fn rung(mut self, rung: i32) -> Self {
        self.file.intent.rung = rung;
        self
    }

    pub(crate) fn known_as(mut self, reference: &str) -> Self {
        self.file.intent.psp_refund_ref = Some(reference.to_owned());
        self
    }

    pub(crate) fn timeline(mut self, timeline: i64) -> Self {
        self.file.intent.timeline = timeline;
        self
    }

    pub(crate) fn machine_version(mut self, version: i32) -> Self {
        self.file.intent.machine_version = version;
        self
    }

    /// A create given 60 s, its key honoured for 24 h from the first one on, absent from 6 minutes after its start.
    pub(crate) fn create(self, started: i64, outcome: impl Into<Option<Outcome>>) -> Self {
        let first = self
            .file
            .attempts
            .iter()
            .find(|earlier| {
                earlier.kind == AttemptKind::Create
                    && !matches!(earlier.outcome, Some(RecordedOutcome { outcome: Outcome::NotExecuted { .. }, .. }))
            })
            .and_then(|earlier| earlier.key_expires_at);
        let expires_at = first.unwrap_or(at(started) + TimeDelta::hours(24));
        let absent_until = at(started) + TimeDelta::minutes(6);
        self.attempt(AttemptKind::Create, started, outcome.into(), Some(expires_at), Some(absent_until))
    }

    pub(crate) fn lookup(self, started: i64, outcome: impl Into<Option<Outcome>>) -> Self {
        self.attempt(AttemptKind::Lookup, started, outcome.into(), None, None)
    }

    fn attempt(
        mut self,
        kind: AttemptKind,
        started: i64,
        outcome: Option<Outcome>,
        key_expires_at: Option<DateTime<Utc>>,
        absent_until: Option<DateTime<Utc>>,
    ) -> Self {
        let number = self.file.attempts.len() as u128 + 1;
        let version = self.file.intent.version + 1;
        self.file.attempts.push(Attempt {
            attempt_id: attempt_id(number),
            intent_id: self.file.intent.intent_id.clone(),
            kind,
            token: Token { epoch: 1, counter: version },
            session: SessionId(Uuid::from_u128(1)),
            installed_version: version,
            started_at: at(started),
            deadline: at(started + 60),
            key_expires_at,
            absent_until,
            grounds: None,
            outcome: outcome.map(|outcome| RecordedOutcome {
                outcome,
                duration_ms: 5,
                late: false,
                recorded_at: at(started),
            }),
        });
        self.file.intent.version = version;
        self
    }

    /// The latest attempt is open; its time limit is 75 s after its start.
    pub(crate) fn open(mut self) -> Self {
        let attempt = self.file.attempts.last().unwrap();
        self.file.intent.open_attempt = Some(attempt.attempt_id);
        self.file.intent.holder_session = Some(attempt.session);
        self.file.intent.next_action = NextAction::Lookup;
        self.file.intent.next_action_at = Some(attempt.started_at + TimeDelta::seconds(75));
        self
    }

    pub(crate) fn unread(mut self, message: InboxMessage) -> Self {
        let number = self.file.unread.last().map_or(1, |row| row.inbox_id + 1);
        self.file.unread.push(InboxRow {
            inbox_id: number,
            intent_id: self.file.intent.intent_id.clone(),
            source_id: format!("source-{number}"),
            message,
            received_at: at(0),
        });
        self
    }

    /// The answer to the attempt of that number, come too late for its caller.
    pub(crate) fn late(self, attempt: u128, outcome: Outcome) -> Self {
        self.unread(InboxMessage::LateAnswer { attempt_id: attempt_id(attempt), outcome, duration_ms: 45_000 })
    }

    pub(crate) fn cancel(self) -> Self {
        self.unread(InboxMessage::Cancel { actor: "ana".to_owned(), reason: "typo".to_owned() })
    }

    pub(crate) fn replay(self) -> Self {
        self.unread(InboxMessage::Replay { actor: "ana".to_owned(), reason: "stuck".to_owned() })
    }

    pub(crate) fn notice(self) -> Self {
        self.unread(InboxMessage::ProviderNotice {
            event_id: "evt_1".to_owned(),
            event_type: "refund.updated".to_owned(),
        })
    }
}

// Plans and decisions as texts.

pub(crate) fn decision_text(decision: &Decision) -> String {
    let mut text = decision.state.to_string();
    if let Some(time) = decision.next_action_at {
        write!(text, " {}@{}", decision.next_action.as_str(), seconds(time)).unwrap();
    }
    if decision.rung != 0 && decision.next_action != NextAction::None {
        write!(text, " rung {}", decision.rung).unwrap();
    }
    if decision.effect != Effect::None {
        write!(text, " {:?}", decision.effect).unwrap();
    }
    for found in &decision.breaks {
        write!(text, " !{}", found.class).unwrap();
    }
    if decision.state == State::NeedsReview || decision.state == State::Failed {
        let reason = decision.state_reason.as_deref().unwrap_or("no reason");
        write!(text, " ({})", reason.split(':').next().unwrap()).unwrap();
    }
    text
}

pub(crate) fn plan_text(plan: &Plan) -> String {
    match plan {
        Plan::LeaveAlone(why) => format!("leave alone: {why:?}"),
        Plan::Write(write) => format!("write {}", decision_text(&write.decision)),
        Plan::Call(call) => {
            let mut text = format!("{} while {}", call.kind.as_str(), call.state);
            if call.rung != 0 {
                write!(text, " rung {}", call.rung).unwrap();
            }
            if call.grounds.is_some() {
                text.push_str(" on grounds");
            }
            text
        }
    }
}
