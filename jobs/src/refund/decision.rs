//! What an intent becomes after an event, and when it is looked at next.
//!
//! Ladders are data in [`Capabilities`]; `rung` is the index of the next delay to use. A state that is neither final nor parked
//! always leaves here with a next action and a time.

use super::capabilities::{Capabilities, NOT_EXECUTED_LADDER_S};
use super::intent::{Intent, NextAction};
use super::state::{Effect, Event, IllegalTransition, State, next};
use chrono::{DateTime, TimeDelta, Utc};

/// Longest a provider's Retry-After is believed.
pub const RETRY_AFTER_MAX: TimeDelta = TimeDelta::hours(1);

/// A contradiction to record beside a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBreak {
    pub class: &'static str,
    pub detail: String,
}

/// What an intent becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub state: State,
    pub state_reason: Option<String>,
    pub psp_refund_ref: Option<String>,
    pub next_action: NextAction,
    pub next_action_at: Option<DateTime<Utc>>,
    pub rung: i32,
    pub effect: Effect,
    pub breaks: Vec<FoundBreak>,
}

impl Decision {
    /// The intent as it stands, nothing planned yet.
    #[must_use]
    pub fn unchanged(intent: &Intent) -> Self {
        Self {
            state: intent.state,
            state_reason: intent.state_reason.clone(),
            psp_refund_ref: intent.psp_refund_ref.clone(),
            next_action: intent.next_action,
            next_action_at: intent.next_action_at,
            rung: intent.rung,
            effect: Effect::None,
            breaks: Vec::new(),
        }
    }

    /// Applies an event. A state that is left takes its rung and reason with it; one that ends or parks plans nothing.
    pub fn take(&mut self, event: Event) -> Result<(), IllegalTransition> {
        let step = next(self.state, event)?;
        if step.state != self.state {
            self.rung = 0;
            self.state_reason = None;
            if step.state.is_final() || step.state == State::NeedsReview {
                self.plan_nothing();
            }
        }
        self.state = step.state;
        match (self.effect, step.effect) {
            (_, Effect::None) => {}
            (_, effect) => self.effect = effect,
        }
        Ok(())
    }

    pub fn plan_nothing(&mut self) {
        self.next_action = NextAction::None;
        self.next_action_at = None;
    }

    pub fn plan_at(&mut self, action: NextAction, at: DateTime<Utc>) {
        self.next_action = action;
        self.next_action_at = Some(at);
    }

    /// Waits for a person, with the ground. A final state stays as it is, its own reason kept: say the ground in a break.
    pub fn park(&mut self, reason: String) {
        if next(self.state, Event::Parked).is_ok() {
            self.state = State::NeedsReview;
            self.state_reason = Some(reason);
            self.rung = 0;
        }
        self.plan_nothing();
    }

    /// A look asked for from outside stands in for the planned one, so it does not use up the ladder.
    pub fn look_now(&mut self, now: DateTime<Utc>) {
        if self.next_action_at.is_some_and(|at| at > now) {
            self.rung = (self.rung - 1).max(0);
        }
        if self.state.is_final() {
            self.rung = 0;
        }
        self.plan_at(NextAction::Lookup, now);
    }

    /// The next lookup by the ladder of the state; at its end the intent is parked, or left if it is final.
    /// `absent_until` pulls the lookup forward to the first moment it can prove absence.
    pub fn climb(&mut self, capabilities: &Capabilities, now: DateTime<Utc>, absent_until: Option<DateTime<Utc>>) {
        let ladder = if self.state == State::Processing {
            &capabilities.processing_ladder
        } else {
            &capabilities.unknown_ladder
        };
        let Some(delay) = usize::try_from(self.rung).ok().and_then(|rung| ladder.get(rung)) else {
            if self.state.is_final() {
                self.plan_nothing();
            } else {
                self.park(format!("ladder_ended: {} lookups brought no proof", ladder.len()));
            }
            return;
        };
        let mut at = now + *delay;
        if self.state != State::Processing
            && let Some(until) = absent_until
            && now < until
        {
            at = at.min(until);
        }
        self.rung += 1;
        self.plan_at(NextAction::Lookup, at);
    }

    /// The provider did not start on it: the same action again, later. Never parks.
    pub fn back_off(&mut self, action: NextAction, now: DateTime<Utc>, in_a_row: usize, retry_after_ms: Option<u64>) {
        let last = NOT_EXECUTED_LADDER_S.len() - 1;
        let step = TimeDelta::seconds(NOT_EXECUTED_LADDER_S[in_a_row.saturating_sub(1).min(last)]);
        let asked = retry_after_ms
            .and_then(|ms| i64::try_from(ms).ok())
            .and_then(TimeDelta::try_milliseconds)
            .unwrap_or(TimeDelta::zero())
            .min(RETRY_AFTER_MAX);
        self.plan_at(action, now + step.max(asked));
    }
}
