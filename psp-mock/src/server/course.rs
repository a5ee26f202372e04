//! The course of one call: count it, meet its fault, honour its key, execute, and decide what its caller gets.
//!
//! Executing does not depend on the caller: a call that executes last runs in a task of its own, so that a caller who hangs up does
//! not stop it. That is how a real PSP behaves, and it is what makes a timeout an unknown outcome.

use super::Shared;
use super::call::{Call, Route};
use super::work::Work;
use crate::config::LatencyOn;
use crate::faults::{Executes, Fate, How, Instead, Plan};
use crate::ids;
use crate::state::State;
use crate::state::changes::{Due, LateCreate};
use crate::state::keys::{Answer, Known};
use crate::state::sight::Named;
use crate::wire::ApiError;
use std::sync::Arc;
use std::time::Duration;

/// What the caller gets, and when.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answer: Answer,
    pub(crate) latency: Duration,
    pub(crate) fate: Fate,
    pub(crate) replayed: bool,
    pub(crate) retry_after_s: Option<u64>,
}

impl Outcome {
    fn new(answer: impl Into<Answer>, latency: Duration, fate: Fate) -> Self {
        Self { answer: answer.into(), latency, fate, replayed: false, retry_after_s: None }
    }

    fn at_once(answer: impl Into<Answer>) -> Self {
        Self::new(answer, Duration::ZERO, Fate::Whole)
    }

    fn lost(latency: Duration, how: How) -> Self {
        Self::new(ApiError::internal(504), latency, Fate::NoAnswer(how))
    }
}

/// Either done, or to be executed at the end of its latency.
enum Step {
    Done(Outcome),
    ExecuteLast(Box<(Work, Plan)>),
}

/// Runs a call up to the point where only waiting and answering are left.
pub(crate) async fn run(shared: &Arc<Shared>, call: Call) -> Outcome {
    let (work, plan) = match begin(shared, &call) {
        Step::Done(outcome) => return outcome,
        Step::ExecuteLast(last) => *last,
    };
    let shared = shared.clone();
    let executed = tokio::spawn(async move {
        tokio::select! {
            biased;
            () = shared.stopped() => return Outcome::lost(Duration::ZERO, How::Close),
            () = tokio::time::sleep(plan.latency) => {}
        }
        let (mut state, now_ms) = shared.now();
        execute(&mut state, &call, work, Plan { latency: Duration::ZERO, ..plan }, now_ms)
    });
    executed.await.unwrap_or_else(|_| Outcome::lost(Duration::ZERO, How::Close))
}

fn begin(shared: &Shared, call: &Call) -> Step {
    let (mut state, now_ms) = shared.now();
    let state = &mut *state;
    let known = call.key.as_ref().map_or(Known::Nothing, |key| state.keys.look(key, now_ms));
    count(state, call);
    let plan = plan(shared, state, call, !matches!(known, Known::Nothing));
    if let Some(instead) = &plan.instead {
        return Step::Done(not_executed(state, call, &known, instead, plan.latency, now_ms));
    }
    match known {
        Known::Nothing => {}
        Known::Refused(error) => return Step::Done(Outcome::at_once(error)),
        Known::Result(answer) => {
            state.tallies.totals.replays += 1;
            return Step::Done(Outcome { replayed: true, ..Outcome::new(answer, plan.latency, plan.fate) });
        }
    }
    let work = match Work::prepare(call) {
        Ok(work) => work,
        Err(error) => return Step::Done(Outcome::at_once(error)),
    };
    if let Some(key) = &call.key {
        state.keys.begin(key, now_ms);
    }
    match (work, plan.executes_late_ms) {
        (Work::CreateRefund(order), Some((after_ms, how))) => {
            let late = LateCreate { order: *order, key: call.key.clone(), script: plan.script };
            state.plan(now_ms.saturating_add(after_ms), Due::Execute(Box::new(late)));
            shared.due_changed.notify_one();
            Step::Done(Outcome::lost(plan.latency, how))
        }
        (work, _) if plan.executes == Executes::Last && !plan.latency.is_zero() => {
            Step::ExecuteLast(Box::new((work, plan)))
        }
        (work, _) => {
            if !plan.script.changes.is_empty() {
                shared.due_changed.notify_one();
            }
            Step::Done(execute(state, call, work, plan, now_ms))
        }
    }
}

/// Executes and stores the result under the key; the answer is due after the plan's latency.
fn execute(state: &mut State, call: &Call, work: Work, plan: Plan, now_ms: i64) -> Outcome {
    let answer = work.run(state, call, &plan.script, now_ms);
    let (stored, sent, fate) = match plan.fate {
        Fate::Error { status, stored } => {
            let error = Answer::from(ApiError::internal(status));
            (if stored { error.clone() } else { answer }, error, Fate::Whole)
        }
        fate => (answer.clone(), answer, fate),
    };
    if let Some(key) = &call.key {
        let wait_ms = i64::try_from(plan.latency.as_millis()).unwrap_or(i64::MAX);
        state.keys.finish(key, stored, now_ms.saturating_add(wait_ms));
    }
    Outcome::new(sent, plan.latency, fate)
}

fn not_executed(
    state: &mut State,
    call: &Call,
    known: &Known,
    instead: &Instead,
    latency: Duration,
    now_ms: i64,
) -> Outcome {
    match instead {
        Instead::NoAnswer(how) => Outcome::lost(latency, *how),
        Instead::RateLimited { retry_after_s } => {
            Outcome { retry_after_s: *retry_after_s, ..Outcome::new(ApiError::rate_limited(), latency, Fate::Whole) }
        }
        Instead::Error { status, stored } => {
            let answer = Answer::from(ApiError::internal(*status));
            if let (true, Known::Nothing, Some(key)) = (*stored, known, &call.key) {
                state.keys.begin(key, now_ms);
                state.keys.finish(key, answer.clone(), now_ms);
            }
            Outcome::new(answer, latency, Fate::Whole)
        }
    }
}

fn count(state: &mut State, call: &Call) {
    state.tallies.totals.calls_received += 1;
    if call.is_create() {
        let key_hash = call.key.as_ref().map(|key| ids::hash(0, &key.scoped));
        state.tallies.create_received(call.form.get(&state.reference_param), key_hash);
    }
}

/// What is to happen to this call: its fault's effects over the configured latency.
fn plan(shared: &Shared, state: &mut State, call: &Call, repeat: bool) -> Plan {
    let config = &shared.config;
    let slow = !repeat && (config.latency_on == LatencyOn::All || call.is_create());
    let mut plan = Plan::new(if slow { config.latency } else { Duration::ZERO }, config.latency_executes);
    if state.faults.is_quiet() {
        return plan;
    }
    let (kind, form) = (call.route.kind(), &call.form);
    let named = match &call.route {
        Route::RefundRead(id) | Route::RefundUpdate(id) | Route::RefundCancel(id) => Named::Refund(id),
        Route::PaymentRead(_, id) | Route::PaymentConfirm(id) => Named::Payment(id),
        Route::RefundCreate | Route::RefundList => {
            form.text("payment_intent").or_else(|| form.text("charge")).map_or(Named::Nothing, Named::Payment)
        }
        _ => Named::Nothing,
    };
    let intent = form.get(&state.reference_param);
    let effects = state.meet(kind, named, intent, call.key_text.as_deref(), repeat);
    state.tallies.totals.faults_hit += u64::from(!effects.is_empty());
    for effect in &effects {
        plan.add(effect);
    }
    plan
}
