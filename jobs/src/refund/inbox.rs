//! Reading an intent's inbox: what others had to say, applied by the holder in one fenced write.
//!
//! A row that is illegal in the current state is applied as refused, with the reason. A late answer is evidence: it is settled like
//! an answer in time. Nothing here makes a call; what a row asks for (a lookup) becomes the next action.

use super::capabilities::Capabilities;
use super::decision::Decision;
use super::facts::Facts;
use super::intent::{Attempt, InboxMessage, IntentFile, NextAction};
use super::outcome::Outcome;
use super::plan::{Circumstances, WritePlan};
use super::settle::{Settling, settle};
use super::state::{Effect, Event, State};
use crate::ids::AttemptId;

/// What became of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub inbox_id: i64,
    pub refused_because: Option<String>,
}

/// The outcome an attempt gets from its late answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateOutcome {
    pub attempt_id: AttemptId,
    pub outcome: Outcome,
    pub duration_ms: i64,
}

/// Reads unread rows in order of arrival, up to the first that posts: a write posts one transfer, the next step reads on.
#[must_use]
pub fn read(file: &IntentFile, capabilities: &Capabilities, circumstances: Circumstances) -> WritePlan {
    let mut decision = Decision::unchanged(&file.intent);
    let mut late_outcomes: Vec<LateOutcome> = Vec::new();
    let mut readings = Vec::new();
    for row in &file.unread {
        let refused_because = match &row.message {
            InboxMessage::LateAnswer { attempt_id, outcome, duration_ms } => {
                let late = LateOutcome { attempt_id: *attempt_id, outcome: outcome.clone(), duration_ms: *duration_ms };
                late_answer(file, capabilities, circumstances, &mut decision, &mut late_outcomes, late).err()
            }
            InboxMessage::Cancel { .. } => cancel(file, circumstances, &mut decision).err(),
            InboxMessage::Replay { .. } => replay(circumstances, &mut decision).err(),
            InboxMessage::ProviderNotice { .. } => notice(circumstances, &mut decision).err(),
        };
        readings.push(Reading { inbox_id: row.inbox_id, refused_because });
        if decision.effect != Effect::None {
            break;
        }
    }
    // Whoever had a call open is gone, or is us and has written its outcome; an open create is looked up at once.
    if decision.state == State::Sending && decision.take(Event::TakenOver).is_ok() {
        decision.state_reason = Some("its holder went away during the call".to_owned());
        decision.rung = 1;
        decision.plan_at(NextAction::Lookup, circumstances.now.database);
    } else if file.intent.open_attempt.is_some() && decision.next_action_at == file.intent.next_action_at {
        // An abandoned lookup left nothing but its own time limit as the next time: look at once.
        if decision.next_action != NextAction::None {
            decision.plan_at(decision.next_action, circumstances.now.database);
        }
    }
    WritePlan { decision, readings, late_outcomes }
}

fn late_answer(
    file: &IntentFile,
    capabilities: &Capabilities,
    circumstances: Circumstances,
    decision: &mut Decision,
    late_outcomes: &mut Vec<LateOutcome>,
    late: LateOutcome,
) -> Result<(), String> {
    let attempt =
        find_attempt(file, late.attempt_id).ok_or_else(|| format!("no attempt {} of this intent", late.attempt_id))?;
    if attempt.outcome.is_some() || late_outcomes.iter().any(|other| other.attempt_id == late.attempt_id) {
        return Err("the attempt has an outcome already".to_owned());
    }
    late_outcomes.push(late);
    let learned: Vec<(&Attempt, &Outcome)> = late_outcomes
        .iter()
        .filter_map(|late| find_attempt(file, late.attempt_id).map(|attempt| (attempt, &late.outcome)))
        .collect();
    let facts = Facts::new(&file.attempts, &learned);
    let Some((attempt, outcome)) = learned.last().copied() else { return Ok(()) };
    let settling =
        Settling { intent: &file.intent, attempt, outcome, facts: &facts, capabilities, now: circumstances.now };
    *decision = settle(settling, decision.clone());
    Ok(())
}

fn find_attempt(file: &IntentFile, attempt_id: AttemptId) -> Option<&Attempt> {
    file.attempts.iter().find(|attempt| attempt.attempt_id == attempt_id)
}

fn cancel(file: &IntentFile, circumstances: Circumstances, decision: &mut Decision) -> Result<(), String> {
    match decision.state {
        State::Recorded
            if file.intent.timeline != circumstances.timeline || decision.next_action == NextAction::Lookup =>
        {
            decision.plan_at(NextAction::Lookup, circumstances.now.database);
            Err("the database went back in time since this refund was written: it is looked up first, then cancel again".to_owned())
        }
        State::Recorded => decision.take(Event::CancelRequested).map_err(|illegal| illegal.to_string()).map(|()| {
            decision.state_reason = Some("called off before it was sent".to_owned());
        }),
        State::Canceled => Err("it is canceled already".to_owned()),
        state if state.is_final() => Err(format!("it is {state} already")),
        state => Err(format!("a create was started, so it may have executed (state {state})")),
    }
}

fn replay(circumstances: Circumstances, decision: &mut Decision) -> Result<(), String> {
    match decision.state {
        // An open create is being taken over: its lookup comes at once anyway.
        State::Sending => Ok(()),
        State::Unknown | State::Processing | State::NeedsReview => {
            decision.plan_at(NextAction::Lookup, circumstances.now.database);
            Ok(())
        }
        state => Err(format!("nothing to look up: it is {state}")),
    }
}

fn notice(circumstances: Circumstances, decision: &mut Decision) -> Result<(), String> {
    if decision.state == State::Recorded {
        return Err("no create was started, so the provider can not know it".to_owned());
    }
    if decision.state != State::Sending {
        decision.plan_at(NextAction::Lookup, circumstances.now.database);
    }
    Ok(())
}
