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

impl Known<'_> {
    fn shows_refund(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Accepted { .. } | Outcome::Found { .. }))
    }
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

    fn creates(&self) -> impl DoubleEndedIterator<Item = &Known<'a>> {
        self.known.iter().filter(|known| known.attempt.kind == AttemptKind::Create)
    }

    /// Readings that were complete and did not show our refund.
    fn absences(&self) -> impl DoubleEndedIterator<Item = &'a Attempt> {
        self.known
            .iter()
            .filter(|known| known.attempt.kind == AttemptKind::Lookup && matches!(known.outcome, Some(Outcome::Absent)))
            .map(|known| known.attempt)
    }

    /// Creates that may have executed: all but those proved not executed.
    fn possible_creates(&self) -> impl DoubleEndedIterator<Item = &Known<'a>> {
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
        self.possible_creates().next()?.attempt.key_expires_at
    }

    /// How many creates may have executed.
    #[must_use]
    pub fn possible_create_count(&self) -> usize {
        self.possible_creates().count()
    }

    /// When the last create was given up. Where nothing can be looked up, this passed is all that absence can mean.
    #[must_use]
    pub fn given_up_at(&self) -> Option<DateTime<Utc>> {
        self.possible_creates().map(|known| known.attempt.deadline).max()
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
        self.absences().rfind(|reading| reading.started_at >= absent_until)
    }

    /// Whether any create other than `attempt` is open. `no_lookup_at` is the time now where the provider can not be asked:
    /// there a create is absent when its deadline has passed.
    #[must_use]
    pub fn other_create_open(&self, attempt: &Attempt, no_lookup_at: Option<DateTime<Utc>>) -> bool {
        let absent_since = self.absences().map(|reading| reading.started_at).max();
        self.creates().filter(|known| known.attempt.attempt_id != attempt.attempt_id).any(|known| match known.outcome {
            Some(Outcome::Rejected { .. } | Outcome::NotExecuted { .. }) => false,
            _ => match no_lookup_at {
                Some(now) => now < known.attempt.deadline,
                None => !is_absent(known.attempt, absent_since),
            },
        })
    }

    /// An answer or a reading showed a refund of ours.
    #[must_use]
    pub fn was_shown(&self) -> bool {
        self.known.iter().any(Known::shows_refund)
    }

    /// A later call than `attempt` has shown our refund, so that what `attempt` says of its status is the older view.
    #[must_use]
    pub fn is_overtaken(&self, attempt: &Attempt) -> bool {
        self.known
            .iter()
            .rev()
            .take_while(|known| known.attempt.attempt_id != attempt.attempt_id)
            .any(Known::shows_refund)
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
        self.creates().rev().find_map(|known| match known.outcome {
            Some(Outcome::Rejected { rejection }) => Some((known.attempt, rejection)),
            _ => None,
        })
    }

    /// The provider said that the payment holds no more to refund.
    #[must_use]
    pub fn was_already_refunded(&self) -> bool {
        self.last_rejection().is_some_and(|(_, rejection)| rejection.class == RejectionClass::AlreadyRefunded)
    }

    /// How many of the latest attempts of a kind in a row were not executed. Lookups between two creates do not count, or a
    /// resend would be tried every second.
    #[must_use]
    pub fn not_executed_in_a_row(&self, kind: AttemptKind) -> usize {
        self.known
            .iter()
            .rev()
            .filter(|known| known.attempt.kind == kind)
            .take_while(|known| matches!(known.outcome, Some(Outcome::NotExecuted { .. })))
            .count()
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
