//! Reading an intent's inbox: what others had to say, applied by the holder in one fenced write.
//!
//! A row that is illegal in the current state is applied as refused, with the reason. A late answer is evidence: it is settled like
//! an answer in time, and before any wish is judged. An open create is taken over before wishes are judged, so they see `unknown`. Nothing here makes a call; what a row asks for (a lookup) becomes the next action.

use super::capabilities::Capabilities;
use super::decision::Decision;
use super::facts::{Facts, can_look_up};
use super::intent::{Attempt, InboxMessage, InboxRow, IntentFile, NextAction};
use super::outcome::Outcome;
use super::plan::{Circumstances, WritePlan, take_over};
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

/// Reads late answers first, then what people and the provider wish for, each in order of arrival, up to the first that posts:
/// a write posts one transfer, the next step reads on.
#[must_use]
pub fn read(file: &IntentFile, capabilities: &Capabilities, circumstances: Circumstances) -> WritePlan {
    let mut reader = Reader {
        file,
        capabilities,
        circumstances,
        decision: Decision::unchanged(&file.intent),
        late_outcomes: Vec::new(),
        readings: Vec::new(),
    };
    let now = circumstances.now.database;
    let (answers, wishes): (Vec<&InboxRow>, Vec<&InboxRow>) =
        file.unread.iter().partition(|row| matches!(row.message, InboxMessage::LateAnswer { .. }));
    reader.read_rows(&answers);
    // Whoever had a call open is gone, or is us and has written its outcome; an open create is looked up at once.
    if reader.decision.state == State::Sending {
        take_over(&mut reader.decision);
        reader.decision.plan_at(NextAction::Lookup, now);
    } else if file.intent.open_attempt.is_some()
        && reader.decision.next_action != NextAction::None
        && reader.decision.next_action_at == file.intent.next_action_at
    {
        // An abandoned lookup left nothing but its own time limit as the next time: look at once.
        let action = reader.decision.next_action;
        reader.decision.plan_at(action, now);
    }
    if reader.decision.effect == Effect::None {
        reader.read_rows(&wishes);
    }
    // This write brings the row to today's timeline, so the look it owes must be planned by it.
    if reader.decision.state == State::Recorded && file.intent.timeline != circumstances.timeline {
        reader.decision.plan_at(NextAction::Lookup, now);
    }
    let Reader { decision, late_outcomes, readings, .. } = reader;
    WritePlan { decision, readings, late_outcomes }
}

struct Reader<'a> {
    file: &'a IntentFile,
    capabilities: &'a Capabilities,
    circumstances: Circumstances,
    decision: Decision,
    late_outcomes: Vec<LateOutcome>,
    readings: Vec<Reading>,
}

impl Reader<'_> {
    fn read_rows(&mut self, rows: &[&InboxRow]) {
        for row in rows {
            let read = match &row.message {
                InboxMessage::LateAnswer { attempt_id, outcome, duration_ms } => self.late_answer(LateOutcome {
                    attempt_id: *attempt_id,
                    outcome: outcome.clone(),
                    duration_ms: *duration_ms,
                }),
                InboxMessage::Cancel { .. } => self.cancel(),
                InboxMessage::Replay { .. } => self.replay(),
                InboxMessage::ProviderNotice { .. } => self.notice(),
            };
            self.readings.push(Reading { inbox_id: row.inbox_id, refused_because: read.err() });
            if self.decision.effect != Effect::None {
                return;
            }
        }
    }

    fn look_now(&mut self) {
        self.decision.look_now(self.circumstances.now.database);
    }

    fn can_look_up(&self) -> bool {
        can_look_up(&self.file.intent, self.capabilities)
    }

    fn late_answer(&mut self, late: LateOutcome) -> Result<(), String> {
        let Some(attempt) = find_attempt(self.file, late.attempt_id) else {
            // The database may have lost the attempt when it went back in time; the provider may not have lost the refund.
            if matches!(late.outcome, Outcome::Accepted { .. } | Outcome::Found { .. } | Outcome::Unknown { .. }) {
                self.look_now();
            }
            return Err(format!("no attempt {} of this intent", late.attempt_id));
        };
        if attempt.outcome.is_some() || self.late_outcomes.iter().any(|other| other.attempt_id == late.attempt_id) {
            return Err("the attempt has an outcome already".to_owned());
        }
        self.late_outcomes.push(late);
        let learned: Vec<(&Attempt, &Outcome)> = self
            .late_outcomes
            .iter()
            .filter_map(|late| find_attempt(self.file, late.attempt_id).map(|attempt| (attempt, &late.outcome)))
            .collect();
        let facts = Facts::new(&self.file.attempts, &learned);
        let Some((attempt, outcome)) = learned.last().copied() else { return Ok(()) };
        let settling = Settling {
            intent: &self.file.intent,
            attempt,
            outcome,
            facts: &facts,
            capabilities: self.capabilities,
            now: self.circumstances.now,
        };
        self.decision = settle(settling, self.decision.clone());
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), String> {
        let is_restored = self.file.intent.timeline != self.circumstances.timeline;
        match self.decision.state {
            State::Recorded if is_restored || self.decision.next_action == NextAction::Lookup => {
                self.look_now();
                Err("something may have happened that this row does not know: it is looked up first, then cancel again"
                    .to_owned())
            }
            State::Recorded => {
                self.decision.take(Event::CancelRequested).map_err(|illegal| illegal.to_string())?;
                self.decision.state_reason = Some("called off before it was sent".to_owned());
                Ok(())
            }
            State::Canceled => Err("it is canceled already".to_owned()),
            state if state.is_final() => Err(format!("it is {state} already")),
            state => Err(format!("a create was started, so it may have executed (state {state})")),
        }
    }

    fn replay(&mut self) -> Result<(), String> {
        match self.decision.state {
            State::Unknown | State::Processing | State::NeedsReview => {
                self.look_now();
                Ok(())
            }
            state => Err(format!("nothing to look up: it is {state}")),
        }
    }

    /// The notice itself proves nothing; the lookup decides. Even a `recorded` row is looked up: the provider may know a create
    /// that the database forgot.
    fn notice(&mut self) -> Result<(), String> {
        if !self.can_look_up() {
            return Err("this provider can not be asked, and a notice alone proves nothing".to_owned());
        }
        self.look_now();
        Ok(())
    }
}

fn find_attempt(file: &IntentFile, attempt_id: AttemptId) -> Option<&Attempt> {
    file.attempts.iter().find(|attempt| attempt.attempt_id == attempt_id)
}
