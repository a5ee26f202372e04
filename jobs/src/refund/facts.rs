//! What the attempts of an intent prove, taken together.
//!
//! A create is resolved when it was rejected, was not executed, or is absent by the rule: a complete reading, begun after the
//! create's deadline and the provider's absence window, did not show it. Anything else about it is open, and an open
//! create may have moved money.

use super::capabilities::{Capabilities, LookupMode};
use super::intent::{Attempt, AttemptKind, Intent};
use super::outcome::{Outcome, RejectionClass};
use chrono::{DateTime, Utc};

/// One attempt with what is known of it, the outcome just learned included.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub attempt: &'a Attempt,
    pub outcome: Option<&'a Outcome>,
}

/// All attempts of one intent, in order.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    known: Vec<Known<'a>>,
}

impl<'a> Facts<'a> {
    /// The stored attempts, with `learned` taking the place of a missing outcome.
    #[must_use]
    pub fn new(attempts: &'a [Attempt], learned: &[(&'a Attempt, &'a Outcome)]) -> Self {
        let mut known: Vec<Known<'a>> = attempts
            .iter()
            .map(|attempt| Known { attempt, outcome: attempt.outcome.as_ref().map(|recorded| &recorded.outcome) })
            .collect();
        for (attempt, outcome) in learned {
            match known.iter_mut().find(|known| known.attempt.attempt_id == attempt.attempt_id) {
                Some(known) if known.outcome.is_none() => known.outcome = Some(outcome),
                Some(_) => {}
                None => known.push(Known { attempt, outcome: Some(outcome) }),
            }
        }
        Self { known }
    }

    fn creates(&self) -> impl Iterator<Item = &Known<'a>> {
        self.known.iter().filter(|known| known.attempt.kind == AttemptKind::Create)
    }

    /// Creates that may have executed: all but those proved not executed.
    fn possible_creates(&self) -> impl Iterator<Item = &Known<'a>> {
        self.creates().filter(|known| !matches!(known.outcome, Some(Outcome::NotExecuted { .. })))
    }

    /// Every create is proved not executed, or there is none.
    #[must_use]
    pub fn nothing_executed(&self) -> bool {
        self.possible_creates().next().is_none()
    }

    /// When the provider may forget the key, counted from the earliest create that may have executed. A resend never renews it.
    #[must_use]
    pub fn key_expires_at(&self) -> Option<DateTime<Utc>> {
        self.possible_creates().find_map(|known| known.attempt.key_expires_at)
    }

    /// The time a reading must have begun at to prove that none of our creates is there.
    #[must_use]
    pub fn absent_until(&self) -> Option<DateTime<Utc>> {
        self.possible_creates().filter_map(|known| known.attempt.absent_until).max()
    }

    /// The latest reading that proves absence of every create, if there is one.
    #[must_use]
    pub fn absence_proof(&self) -> Option<&'a Attempt> {
        let absent_until = self.absent_until()?;
        self.known
            .iter()
            .filter(|known| matches!(known.outcome, Some(Outcome::Absent)) && known.attempt.started_at >= absent_until)
            .map(|known| known.attempt)
            .next_back()
    }

    /// Whether any create other than `attempt` is open, given that `absent` says whether all of them are absent by the rule.
    #[must_use]
    pub fn other_create_open(&self, attempt: &Attempt) -> bool {
        let absent_since = self.latest_absent_start();
        self.creates().filter(|known| known.attempt.attempt_id != attempt.attempt_id).any(|known| match known.outcome {
            Some(Outcome::Rejected { .. } | Outcome::NotExecuted { .. }) => false,
            _ => !is_absent(known.attempt, absent_since),
        })
    }

    /// Whether some create other than `attempt` was never answered with a rejection or a proof that it was not executed.
    #[must_use]
    pub fn other_create_ever_open(&self, attempt: &Attempt) -> bool {
        self.creates()
            .filter(|known| known.attempt.attempt_id != attempt.attempt_id)
            .any(|known| !matches!(known.outcome, Some(Outcome::Rejected { .. } | Outcome::NotExecuted { .. })))
    }

    /// The create that was refused last, if any was.
    #[must_use]
    pub fn last_rejection(&self) -> Option<(&'a Attempt, &'a super::outcome::Rejection)> {
        self.known.iter().rev().find_map(|known| match known.outcome {
            Some(Outcome::Rejected { rejection }) => Some((known.attempt, rejection)),
            _ => None,
        })
    }

    /// The provider said that the payment holds no more to refund.
    #[must_use]
    pub fn was_already_refunded(&self) -> bool {
        self.last_rejection().is_some_and(|(_, rejection)| rejection.class == RejectionClass::AlreadyRefunded)
    }

    fn latest_absent_start(&self) -> Option<DateTime<Utc>> {
        self.known
            .iter()
            .filter(|known| matches!(known.outcome, Some(Outcome::Absent)))
            .map(|known| known.attempt.started_at)
            .max()
    }

    /// How many of the latest attempts in a row were not executed.
    #[must_use]
    pub fn not_executed_in_a_row(&self) -> usize {
        self.known.iter().rev().take_while(|known| matches!(known.outcome, Some(Outcome::NotExecuted { .. }))).count()
    }
}

fn is_absent(create: &Attempt, absent_since: Option<DateTime<Utc>>) -> bool {
    match (create.absent_until, absent_since) {
        (Some(until), Some(since)) => since >= until,
        _ => false,
    }
}

/// Whether a lookup can find this intent's refund at all.
#[must_use]
pub fn can_look_up(intent: &Intent, capabilities: &Capabilities) -> bool {
    match capabilities.lookup {
        LookupMode::ByOurReference => true,
        LookupMode::ByIdOnly => intent.psp_refund_ref.is_some(),
        LookupMode::None => false,
    }
}
