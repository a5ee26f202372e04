//! Faults: what goes wrong, when, and how often. Scripts are explicit; nothing is hidden in magic amounts or card numbers.
//!
//! A [`Fault`] is a match, a count and one or more effects. Effects of one fault add up (slow AND lost). Of the faults in the queue
//! the oldest that fits a call is used up by it; without one, the seeded rates are drawn. `plan` turns effects into what the
//! server does. Gaps of the settlement report are kept apart, since a report may be read more than once with the same result.

mod effect;
mod named;
mod plan;
mod queue;

pub use effect::{Effect, Executes, Gap, How, WebhookFault};
pub(crate) use plan::{Change, Fate, Instead, Plan, Script, Start};
pub(crate) use queue::Queue;

use serde::{Deserialize, Serialize};

/// One scripted fault, as the library takes it and as `POST /_mock/faults` reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which calls it is for; an empty match fits every create.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// How many fitting calls it hits; 0 means all.
    #[serde(default = "one")]
    pub count: u32,
    /// What happens to them, all of it.
    pub effects: Vec<Effect>,
}

/// Conditions on a call; all that are given must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// Kind of call; `create` when absent.
    pub call: CallKind,
    /// Our reference in the refund's metadata (`intent_id`).
    pub intent: Option<String>,
    /// A payment intent's or charge's id.
    pub payment: Option<String>,
    pub currency: Option<String>,
    /// Type of a webhook event, such as `refund.created`; only for webhook effects.
    pub event: Option<String>,
    /// Starts at the n-th fitting call, counted from 1.
    pub nth: Option<u32>,
}

/// What a call does, as far as faults tell calls apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Creates a refund.
    #[default]
    Create,
    Retrieve,
    List,
    Update,
    Cancel,
    /// Anything on payment intents and charges.
    Payment,
    /// Anything on balance transactions.
    Transaction,
    /// An event on its way to the configured endpoint.
    Webhook,
    /// Matches every call (in a fault only).
    Any,
}

/// A call as faults see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) kind: CallKind,
    pub(crate) intent: Option<&'a str>,
    /// The payment as the caller named it, and its other id.
    pub(crate) payment: [Option<&'a str>; 2],
    pub(crate) currency: Option<&'a str>,
    pub(crate) event: Option<&'a str>,
    /// The key's result is already there: effects on the execution would be wasted on it.
    pub(crate) repeat: bool,
}

impl Fault {
    /// A fault that hits the next fitting create once.
    pub fn once(matches: Match, effect: Effect) -> Self {
        Self { matches, count: 1, effects: vec![effect] }
    }

    /// Says why the fault makes no sense, if so.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.effects.is_empty() {
            return Err("a fault needs at least one effect".to_owned());
        }
        let apart = |e: &&Effect| matches!(e, Effect::Webhook(_) | Effect::Settlement(_));
        if self.effects.len() > 1 && self.effects.iter().any(|e| apart(&e)) {
            return Err("a webhook or settlement effect stands alone in its fault".to_owned());
        }
        if self.matches.nth == Some(0) {
            return Err("nth counts from 1".to_owned());
        }
        Ok(())
    }
}

impl Match {
    pub fn intent(intent: impl Into<String>) -> Self {
        Self { intent: Some(intent.into()), ..Self::default() }
    }

    pub fn call(call: CallKind) -> Self {
        Self { call, ..Self::default() }
    }

    pub(crate) fn fits(&self, seen: &Seen<'_>) -> bool {
        let same = |want: &Option<String>, have: Option<&str>| want.as_deref().is_none_or(|want| have == Some(want));
        (self.call == CallKind::Any || self.call == seen.kind)
            && same(&self.intent, seen.intent)
            && self.payment.as_deref().is_none_or(|want| seen.payment.contains(&Some(want)))
            && self.currency.as_deref().is_none_or(|want| seen.currency.is_some_and(|c| c.eq_ignore_ascii_case(want)))
            && same(&self.event, seen.event)
    }
}

fn one() -> u32 {
    1
}
