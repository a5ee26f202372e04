//! What the holder of an intent does next: the one planning function, for a first try and for recovery alike.
//!
//! Order: leave rows alone that this code must not touch; read the inbox; then plan by state. A create starts only from `recorded`
//! or by the resend rule; any other holder looks up first. A plan without a call is written in one transaction.

use super::capabilities::Capabilities;
use super::decision::Decision;
use super::facts::{Facts, can_look_up};
use super::inbox;
use super::intent::{Attempt, AttemptKind, Intent, IntentFile, MACHINE_VERSION, NextAction};
use super::resend::{self, Now};
use super::state::{Event, State};
use crate::ids::{AttemptId, SessionId, Token};
use chrono::{DateTime, Utc};

/// What holds besides the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    pub now: Now,
    /// PostgreSQL's timeline now. A `recorded` row of another one is looked up before a create or a cancel.
    pub timeline: i64,
    /// False while the provider is paused or the clocks disagree.
    pub creates_allowed: bool,
}

/// Why a row is not touched now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftAlone {
    UnknownMachineVersion,
    NotDue,
    CreatesNotAllowed,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlan {
    pub kind: AttemptKind,
    /// The state while the call is open.
    pub state: State,
    pub state_reason: Option<String>,
    pub rung: i32,
    pub started_at: DateTime<Utc>,
    pub deadline: DateTime<Utc>,
    pub key_expires_at: Option<DateTime<Utc>>,
    pub absent_until: Option<DateTime<Utc>>,
    pub grounds: Option<String>,
    /// When another holder takes over at the latest.
    pub next_action_at: DateTime<Utc>,
}

/// Who makes a call, and under which name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub attempt_id: AttemptId,
    pub token: Token,
    pub session: SessionId,
}

/// A plan without a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritePlan {
    pub decision: Decision,
    pub readings: Vec<inbox::Reading>,
    pub late_outcomes: Vec<inbox::LateOutcome>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    LeaveAlone(LeftAlone),
    Call(Box<CallPlan>),
    Write(Box<WritePlan>),
}

/// The one planning function.
#[must_use]
pub fn plan(file: &IntentFile, capabilities: &Capabilities, circumstances: Circumstances) -> Plan {
    let intent = &file.intent;
    if intent.machine_version != MACHINE_VERSION {
        return Plan::LeaveAlone(LeftAlone::UnknownMachineVersion);
    }
    if !file.unread.is_empty() {
        return Plan::Write(Box::new(inbox::read(file, capabilities, circumstances)));
    }
    // An open attempt belongs to a holder that is gone: we hold its lease now.
    let abandoned = intent.open_attempt.is_some();
    let due = abandoned || intent.next_action_at.is_some_and(|at| at <= circumstances.now.database);
    if !due {
        return Plan::LeaveAlone(LeftAlone::NotDue);
    }
    let facts = Facts::new(&file.attempts, &[]);
    match (intent.state, intent.next_action) {
        (State::Recorded, NextAction::Create) if intent.timeline == circumstances.timeline => {
            if circumstances.creates_allowed {
                call(file, capabilities, circumstances, &facts, AttemptKind::Create, None)
            } else {
                Plan::LeaveAlone(LeftAlone::CreatesNotAllowed)
            }
        }
        (State::Recorded, _) if !can_look_up(intent, capabilities) => parked(
            file,
            "restored_no_lookup: the database went back in time and this provider has no lookup".to_owned(),
        ),
        (State::Unknown, NextAction::Create) if !abandoned => resend(file, capabilities, circumstances, &facts),
        _ => look_up(file, capabilities, circumstances, &facts),
    }
}

fn look_up(file: &IntentFile, capabilities: &Capabilities, circumstances: Circumstances, facts: &Facts<'_>) -> Plan {
    if can_look_up(&file.intent, capabilities) {
        return call(file, capabilities, circumstances, facts, AttemptKind::Lookup, None);
    }
    match file.intent.state {
        State::Sending | State::Unknown => resend(file, capabilities, circumstances, facts),
        // Nobody to ask: its ladder is the time given to a notice or to the settlement before a person looks.
        State::Processing => {
            let mut decision = Decision::unchanged(&file.intent);
            decision.climb(capabilities, circumstances.now.database, None);
            write(decision)
        }
        State::NeedsReview => parked(file, file.intent.state_reason.clone().unwrap_or_else(|| "no_lookup".to_owned())),
        _ => parked(file, "no_lookup: this provider can not be asked about a refund".to_owned()),
    }
}

/// An unknown whose create may be sent again, if the rule still holds at this moment.
fn resend(file: &IntentFile, capabilities: &Capabilities, circumstances: Circumstances, facts: &Facts<'_>) -> Plan {
    let intent = &file.intent;
    match resend::grounds(intent, facts, capabilities, circumstances.now) {
        Ok(_) if !circumstances.creates_allowed => Plan::LeaveAlone(LeftAlone::CreatesNotAllowed),
        Ok(grounds) => call(file, capabilities, circumstances, facts, AttemptKind::Create, Some(grounds)),
        Err(resend::NoResend::NotAbsent) if can_look_up(intent, capabilities) => {
            call(file, capabilities, circumstances, facts, AttemptKind::Lookup, None)
        }
        Err(resend::NoResend::NotAbsent) => {
            let mut decision = Decision::unchanged(intent);
            if decision.state == State::Sending {
                take_over(&mut decision);
            }
            let until = facts.given_up_at().unwrap_or(circumstances.now.database);
            decision.plan_at(NextAction::Create, until.max(circumstances.now.database));
            write(decision)
        }
        Err(why) => parked(file, format!("absent_no_resend: {why}")),
    }
}

/// The lookup that follows comes at once; the ladder starts behind it.
pub(super) fn take_over(decision: &mut Decision) {
    if decision.take(Event::TakenOver).is_ok() {
        decision.state_reason = Some("its holder went away during the call".to_owned());
        decision.rung = 1;
    }
}

fn parked(file: &IntentFile, reason: String) -> Plan {
    let mut decision = Decision::unchanged(&file.intent);
    decision.park(reason);
    write(decision)
}

fn write(decision: Decision) -> Plan {
    Plan::Write(Box::new(WritePlan { decision, readings: Vec::new(), late_outcomes: Vec::new() }))
}

fn call(
    file: &IntentFile,
    capabilities: &Capabilities,
    circumstances: Circumstances,
    facts: &Facts<'_>,
    kind: AttemptKind,
    grounds: Option<String>,
) -> Plan {
    let intent = &file.intent;
    let now = circumstances.now.database;
    let deadline = now + capabilities.timeout;
    let new_key_expiry = match kind {
        AttemptKind::Create => capabilities.key_lifetime.map(|lifetime| now + lifetime),
        AttemptKind::Lookup => None,
    };
    let mut installed = Decision::unchanged(intent);
    if installed.state == State::Sending {
        take_over(&mut installed);
    }
    if kind == AttemptKind::Create && installed.take(Event::CreateStarted).is_err() {
        return parked(file, format!("no_create_from_{}: report this", intent.state));
    }
    Plan::Call(Box::new(CallPlan {
        kind,
        state: installed.state,
        state_reason: installed.state_reason,
        rung: installed.rung,
        started_at: now,
        deadline,
        key_expires_at: facts.key_expires_at().or(new_key_expiry),
        absent_until: (kind == AttemptKind::Create).then_some(deadline + capabilities.absence_window),
        grounds,
        next_action_at: now + capabilities.hold_max,
    }))
}

impl CallPlan {
    /// The attempt this call is recorded as.
    #[must_use]
    pub fn attempt(&self, intent: &Intent, caller: Caller) -> Attempt {
        Attempt {
            attempt_id: caller.attempt_id,
            intent_id: intent.intent_id.clone(),
            kind: self.kind,
            token: caller.token,
            session: caller.session,
            installed_version: intent.version + 1,
            started_at: self.started_at,
            deadline: self.deadline,
            key_expires_at: self.key_expires_at,
            absent_until: self.absent_until,
            grounds: self.grounds.clone(),
            outcome: None,
        }
    }

    /// The row as this call's install leaves it.
    #[must_use]
    pub fn installed(&self, intent: &Intent, caller: Caller, timeline: i64) -> Intent {
        Intent {
            state: self.state,
            state_reason: self.state_reason.clone(),
            version: intent.version + 1,
            fence: caller.token,
            holder_session: Some(caller.session),
            open_attempt: Some(caller.attempt_id),
            next_action: NextAction::Lookup,
            next_action_at: Some(self.next_action_at),
            rung: self.rung,
            timeline,
            ..intent.clone()
        }
    }
}
