//! A tiny honest provider: it keeps its promises about keys and absence, and no others. Times are seconds, see `build::at`.

use crate::build::{already_refunded, found_all, not_executed, rejected_not_stored, rejected_stored, shown};
use jobs::refund::outcome::Outcome;
use jobs::refund::state::PspStatus;

/// What the provider makes of a create that it does not know by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Execute,
    RejectAndStore,
    Reject,
    NotExecuted,
    /// Someone else's refund has used the payment up.
    AlreadyRefunded,
}

/// How refunds fare at this provider: a status at first, another one some time later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub(crate) first: PspStatus,
    pub(crate) later: PspStatus,
    pub(crate) after: i64,
}

#[derive(Debug, Clone)]
struct Made {
    executed_at: i64,
    visible_at: i64,
}

#[derive(Debug, Clone)]
enum Kept {
    Refund(usize),
    Answer(Outcome),
}

#[derive(Debug, Clone)]
pub(crate) struct Psp {
    pub(crate) key_lifetime: Option<i64>,
    course: Course,
    kept: Option<(i64, Kept)>,
    made: Vec<Made>,
    /// Creates that were received but are executed later: when, and when they can be seen.
    delayed: Vec<(i64, i64)>,
    is_used_up: bool,
}

impl Psp {
    pub(crate) fn new(key_lifetime: Option<i64>, course: Course) -> Self {
        Self { key_lifetime, course, kept: None, made: Vec::new(), delayed: Vec::new(), is_used_up: false }
    }

    /// How many refunds were executed for the one intent.
    pub(crate) fn executions(&self) -> usize {
        self.made.len()
    }

    pub(crate) fn has_delayed(&self) -> bool {
        !self.delayed.is_empty()
    }

    /// Whether the money is with the customer, as far as this provider knows now.
    pub(crate) fn is_paid(&self, time: i64) -> bool {
        self.made.iter().any(|made| matches!(self.status(made, time), PspStatus::Succeeded | PspStatus::Processing))
    }

    /// Executes what was delayed until now.
    pub(crate) fn advance(&mut self, time: i64) {
        self.delayed.sort_unstable();
        while let Some(&(execute_at, visible_at)) = self.delayed.first().filter(|(execute_at, _)| *execute_at <= time) {
            self.delayed.remove(0);
            self.create(execute_at, visible_at, Verdict::Execute);
        }
    }

    /// A create that will be executed later.
    pub(crate) fn delay(&mut self, execute_at: i64, visible_at: i64) {
        self.delayed.push((execute_at, visible_at));
    }

    pub(crate) fn create(&mut self, time: i64, visible_at: i64, verdict: Verdict) -> Outcome {
        if let Some((since, kept)) = &self.kept
            && self.key_lifetime.is_some_and(|lifetime| time < since + lifetime)
        {
            return match kept {
                Kept::Refund(number) => Outcome::Accepted { refund: self.show(*number, time) },
                Kept::Answer(answer) => answer.clone(),
            };
        }
        match verdict {
            Verdict::Execute if self.is_used_up => already_refunded(),
            Verdict::Execute => {
                self.made.push(Made { executed_at: time, visible_at });
                let number = self.made.len() - 1;
                self.kept = Some((time, Kept::Refund(number)));
                Outcome::Accepted { refund: self.show(number, time) }
            }
            Verdict::RejectAndStore => {
                self.kept = Some((time, Kept::Answer(rejected_stored())));
                rejected_stored()
            }
            Verdict::Reject => rejected_not_stored(),
            Verdict::NotExecuted => not_executed(),
            Verdict::AlreadyRefunded => {
                self.is_used_up = true;
                already_refunded()
            }
        }
    }

    /// A complete reading begun at `time`.
    pub(crate) fn lookup(&self, time: i64) -> Outcome {
        let seen: Vec<_> = self
            .made
            .iter()
            .enumerate()
            .filter(|(_, made)| made.visible_at <= time)
            .map(|(number, _)| self.show(number, time))
            .collect();
        if seen.is_empty() { Outcome::Absent } else { found_all(&seen) }
    }

    fn status(&self, made: &Made, time: i64) -> PspStatus {
        if time < made.executed_at + self.course.after { self.course.first } else { self.course.later }
    }

    fn show(&self, number: usize, time: i64) -> jobs::refund::outcome::PspRefund {
        shown(&format!("re_{number}"), 2285, "EUR", self.status(&self.made[number], time))
    }
}
