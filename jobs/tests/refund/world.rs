//! One refund, its provider, and the holders that come and go, moved step by step as the worker would move them.
//!
//! Checked after every write: the table's CHECKs, transfers that match the state, evidence behind a final state, and never more
//! than one execution.

use crate::build::*;
use crate::model::{Course, Psp, Verdict};
use jobs::ids::{AttemptId, SessionId, Token};
use jobs::refund::capabilities::{Capabilities, LookupMode};
use jobs::refund::decision::Decision;
use jobs::refund::facts::Facts;
use jobs::refund::intent::{Attempt, AttemptKind, InboxMessage, Intent, NextAction, RecordedOutcome};
use jobs::refund::outcome::Outcome;
use jobs::refund::plan::{CallPlan, Caller, Circumstances, Plan, WritePlan, plan};
use jobs::refund::resend::Now;
use jobs::refund::settle::{Settling, settle};
use jobs::refund::state::{Effect, State};
use uuid::Uuid;

/// A provider's record as configured, and the truth about its keys.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) capabilities: Capabilities,
    pub(crate) key_lifetime: Option<i64>,
    pub(crate) course: Course,
    /// How far the local clock is from the database's.
    pub(crate) local_offset: i64,
    /// A sender may be stopped before its first byte for as long as a key lives, beyond every absence window.
    pub(crate) has_stopped_senders: bool,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    /// The provider acts at once, and its answer is ready so many seconds later.
    Answered { verdict: Verdict, after: i64 },
    /// It gets there, is executed this much later, and the caller learns nothing.
    Delayed { execute_after: i64 },
    /// It never gets there, and the caller learns nothing.
    Lost,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Delivery {
    InTime,
    /// The holder lost its lease meanwhile; its answer is in the inbox this many seconds after it came.
    Late(i64),
    /// The holder died.
    Never,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Wish {
    None,
    Cancel,
    Replay,
    Notice,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    /// Seconds to wait first; below zero: until the next action is due.
    pub(crate) wait: i64,
    pub(crate) fate: Fate,
    pub(crate) visible_after: i64,
    pub(crate) delivery: Delivery,
    pub(crate) wish: Wish,
    pub(crate) creates_allowed: bool,
}

const HONEST: Move = Move {
    wait: -1,
    fate: Fate::Answered { verdict: Verdict::Execute, after: 1 },
    visible_after: 0,
    delivery: Delivery::InTime,
    wish: Wish::None,
    creates_allowed: true,
};

/// Most moves a refund may need once the provider behaves.
const HONEST_MOVES_MAX: usize = 60;

#[derive(Debug)]
pub(crate) struct World {
    setup: Setup,
    pub(crate) refund: Refund,
    psp: Psp,
    time: i64,
    attempts_made: u128,
    /// Late answers on their way.
    on_the_way: Vec<(i64, InboxMessage)>,
    posts: usize,
    reverses: usize,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let psp = Psp::new(setup.key_lifetime, setup.course);
        Self { setup, refund: refund(), psp, time: 0, attempts_made: 0, on_the_way: Vec::new(), posts: 0, reverses: 0 }
    }

    pub(crate) fn intent(&self) -> &Intent {
        &self.refund.file.intent
    }

    fn now(&self) -> Now {
        Now { database: at(self.time), local: at(self.time + self.setup.local_offset) }
    }

    fn is_over(&self) -> bool {
        let intent = self.intent();
        let is_at_rest = intent.state.is_final() || intent.state == State::NeedsReview;
        is_at_rest
            && intent.next_action == NextAction::None
            && self.refund.file.unread.is_empty()
            && self.on_the_way.is_empty()
    }

    pub(crate) fn step(&mut self, step: Move) -> Result<(), String> {
        self.wait(step.wait);
        let refund = self.refund.clone();
        self.refund = match step.wish {
            Wish::None => refund,
            Wish::Cancel => refund.cancel(),
            Wish::Replay => refund.replay(),
            Wish::Notice => refund.notice(),
        };
        let circumstances = Circumstances { now: self.now(), timeline: 1, creates_allowed: step.creates_allowed };
        match plan(&self.refund.file, &self.setup.capabilities, circumstances) {
            Plan::LeaveAlone(_) => Ok(()),
            Plan::Write(written) => self.write(*written),
            Plan::Call(call) => self.call(&call, step),
        }
    }

    fn wait(&mut self, seconds_to_wait: i64) {
        let until = if seconds_to_wait >= 0 {
            self.time + seconds_to_wait
        } else if self.intent().open_attempt.is_some() || !self.refund.file.unread.is_empty() {
            self.time
        } else {
            let due = self.intent().next_action_at.map(seconds);
            let arrival = self.on_the_way.iter().map(|(time, _)| *time).min();
            due.into_iter().chain(arrival).min().unwrap_or(self.time)
        };
        self.go_to(until);
    }

    fn go_to(&mut self, time: i64) {
        self.time = self.time.max(time);
        self.psp.advance(self.time);
        let now = self.time;
        let (arrived, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.on_the_way).into_iter().partition(|(time, _)| *time <= now);
        self.on_the_way = rest;
        for (_, message) in arrived {
            self.refund = self.refund.clone().unread(message);
        }
    }

    fn write(&mut self, written: WritePlan) -> Result<(), String> {
        for late in written.late_outcomes {
            self.record(late.attempt_id, late.outcome, true)?;
        }
        if written.readings.len() > self.refund.file.unread.len() {
            return Err("more readings than rows".to_owned());
        }
        self.refund.file.unread.retain(|row| written.readings.iter().all(|reading| reading.inbox_id != row.inbox_id));
        self.decide(&written.decision)
    }

    fn record(&mut self, id: AttemptId, outcome: Outcome, late: bool) -> Result<(), String> {
        let recorded_at = at(self.time);
        let attempt = self.refund.file.attempts.iter_mut().find(|attempt| attempt.attempt_id == id).unwrap();
        if attempt.outcome.is_some() {
            return Err(format!("attempt {id} has two outcomes"));
        }
        attempt.outcome = Some(RecordedOutcome { outcome, duration_ms: 1, late, recorded_at });
        Ok(())
    }

    fn call(&mut self, call: &CallPlan, step: Move) -> Result<(), String> {
        self.attempts_made += 1;
        let caller = Caller {
            attempt_id: attempt_id(self.attempts_made),
            token: Token { epoch: 1, counter: self.intent().version },
            session: SessionId(Uuid::from_u128(self.attempts_made)),
        };
        let attempt = call.attempt(self.intent(), caller);
        self.refund.file.intent = call.installed(self.intent(), caller, 1);
        self.refund.file.attempts.push(attempt.clone());
        self.check_row()?;
        let (outcome, answered_at) = self.ask(&attempt, step);
        self.check_executions()?;
        match step.delivery {
            Delivery::Never => Ok(()),
            Delivery::Late(after) => {
                let message = InboxMessage::LateAnswer { attempt_id: attempt.attempt_id, outcome, duration_ms: 1 };
                self.on_the_way.push((answered_at + after, message));
                Ok(())
            }
            Delivery::InTime => {
                self.go_to(answered_at);
                self.settle(&attempt, outcome)
            }
        }
    }

    /// What the provider does, and what the caller hears when.
    fn ask(&mut self, attempt: &Attempt, step: Move) -> (Outcome, i64) {
        let (started, deadline) = (self.time, seconds(attempt.deadline));
        let last = deadline + TRUE_WINDOW;
        let timeout = (Outcome::Unknown { reason: "timeout".to_owned() }, deadline);
        match (attempt.kind, step.fate) {
            (_, Fate::Lost) => timeout,
            (AttemptKind::Create, Fate::Answered { verdict, after }) => {
                (self.psp.create(started, (started + step.visible_after).min(last), verdict), started + after)
            }
            (AttemptKind::Create, Fate::Delayed { execute_after }) if self.setup.has_stopped_senders => {
                self.psp.delay(started + execute_after, started + execute_after);
                timeout
            }
            (AttemptKind::Create, Fate::Delayed { execute_after }) => {
                let execute_at = (started + execute_after).min(last);
                self.psp.delay(execute_at, (execute_at + step.visible_after).min(last));
                timeout
            }
            (AttemptKind::Lookup, Fate::Answered { verdict: Verdict::NotExecuted, after }) => {
                (not_executed(), started + after)
            }
            (AttemptKind::Lookup, Fate::Answered { after, .. }) => (self.psp.lookup(started), started + after),
            (AttemptKind::Lookup, Fate::Delayed { .. }) => (unknown(), started + 1),
        }
    }

    fn settle(&mut self, attempt: &Attempt, outcome: Outcome) -> Result<(), String> {
        let decision = {
            let learned = [(attempt, &outcome)];
            let earlier = &self.refund.file.attempts[..self.refund.file.attempts.len() - 1];
            let facts = Facts::new(earlier, &learned);
            let settling = Settling {
                intent: self.intent(),
                attempt,
                outcome: &outcome,
                facts: &facts,
                capabilities: &self.setup.capabilities,
                now: self.now(),
            };
            settle(settling, Decision::unchanged(self.intent()))
        };
        self.record(attempt.attempt_id, outcome, false)?;
        self.decide(&decision)
    }

    fn decide(&mut self, decision: &Decision) -> Result<(), String> {
        let intent = &mut self.refund.file.intent;
        intent.version += 1;
        intent.state = decision.state;
        intent.state_reason.clone_from(&decision.state_reason);
        intent.psp_refund_ref.clone_from(&decision.psp_refund_ref);
        intent.next_action = decision.next_action;
        intent.next_action_at = decision.next_action_at;
        intent.rung = decision.rung;
        intent.open_attempt = None;
        intent.holder_session = None;
        match decision.effect {
            Effect::None | Effect::Break => {}
            Effect::Post | Effect::PostAndBreak => self.posts += 1,
            Effect::Reverse => self.reverses += 1,
        }
        self.check_row()?;
        self.check_transfers()?;
        self.check_evidence()?;
        self.check_executions()
    }

    /// The CHECKs of `refund_intents`.
    fn check_row(&self) -> Result<(), String> {
        let intent = self.intent();
        let is_planned = intent.next_action != NextAction::None;
        let may_rest = intent.state.is_final() || intent.state == State::NeedsReview;
        let broken = [
            ("refund_intents_never_silent", is_planned != intent.next_action_at.is_some() || !(may_rest || is_planned)),
            ("refund_intents_parked_with_reason", intent.state == State::NeedsReview && intent.state_reason.is_none()),
            ("refund_intents_sending_is_open", intent.state == State::Sending && intent.open_attempt.is_none()),
            ("refund_intents_rung_not_negative", intent.rung < 0),
        ];
        match broken.iter().find(|(_, is_broken)| *is_broken) {
            Some((name, _)) => Err((*name).to_owned()),
            None => Ok(()),
        }
    }

    fn check_transfers(&self) -> Result<(), String> {
        let posts = usize::from(matches!(self.intent().state, State::Succeeded | State::Reversed));
        let reverses = usize::from(self.intent().state == State::Reversed);
        if (self.posts, self.reverses) == (posts, reverses) {
            Ok(())
        } else {
            Err(format!("{} posts and {} reverses while {}", self.posts, self.reverses, self.intent().state))
        }
    }

    fn check_evidence(&self) -> Result<(), String> {
        let attempts = &self.refund.file.attempts;
        let outcomes = || attempts.iter().filter_map(|attempt| attempt.outcome.as_ref().map(|known| &known.outcome));
        let is_shown = outcomes().any(|outcome| matches!(outcome, Outcome::Accepted { .. } | Outcome::Found { .. }));
        let has_evidence = match self.intent().state {
            State::Succeeded | State::Reversed => is_shown,
            State::Failed => is_shown || outcomes().any(|outcome| matches!(outcome, Outcome::Rejected { .. })),
            State::Canceled => is_shown || Facts::new(attempts, &[]).nothing_executed(),
            _ => true,
        };
        if has_evidence { Ok(()) } else { Err(format!("{} without evidence", self.intent().state)) }
    }

    fn check_executions(&self) -> Result<(), String> {
        if self.psp.executions() > 1 { Err("the provider executed two refunds".to_owned()) } else { Ok(()) }
    }

    /// From here on the provider behaves.
    fn finish(&mut self) -> Result<(), String> {
        for _ in 0..HONEST_MOVES_MAX {
            if self.is_over() {
                return Ok(());
            }
            self.step(HONEST)?;
        }
        Err(format!("not over after {HONEST_MOVES_MAX} honest moves: {:#?}", self.refund.file))
    }

    /// The end agrees with the provider's own book.
    fn check_end(&self) -> Result<(), String> {
        let paid = self.psp.is_paid(self.time);
        match self.intent().state {
            State::Succeeded if self.psp.executions() == 0 => Err("succeeded, never executed".to_owned()),
            State::Reversed if paid => Err("reversed, yet the customer is paid".to_owned()),
            State::Failed | State::Canceled if paid => {
                Err(format!("{}, yet the customer is paid", self.intent().state))
            }
            _ => Ok(()),
        }
    }
}

/// How long after its deadline a create may still be executed or unseen, whatever the provider's record says.
const TRUE_WINDOW: i64 = 300;

pub(crate) fn run(setup: Setup, moves: &[Move]) -> Result<World, String> {
    let mut world = World::new(setup);
    for step in moves {
        world.step(*step)?;
    }
    world.finish()?;
    world.check_end()?;
    while world.psp.has_delayed() {
        world.go_to(world.time + DAY);
    }
    // Much later, when the provider has made up its mind for good, it says that something happened.
    world.go_to(world.time + 5 * DAY);
    world.step(Move { wish: Wish::Notice, ..HONEST })?;
    world.finish()?;
    let can_look_up = world.setup.capabilities.lookup == LookupMode::ByOurReference;
    if can_look_up && world.intent().state == State::Succeeded && !world.psp.is_paid(world.time) {
        return Err("the provider took it back and nobody noticed".to_owned());
    }
    world.check_end()?;
    Ok(world)
}
