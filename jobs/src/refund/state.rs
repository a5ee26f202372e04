//! The states of one refund and the one transition function.
//!
//! Any pair of state and event that is not listed is a typed error; recovery after a crash uses the same function as the first
//! try. The table this function spans is printed by a test and compared with `transitions.txt`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a refund stands. See `ARCHITECTURE.md` for the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Placeholder on disk; no create may have executed.
    Recorded,
    /// A create was started and its outcome is not recorded.
    Sending,
    /// A create may have executed.
    Unknown,
    /// The provider took it and decides later.
    Processing,
    /// The provider says done; posted.
    Succeeded,
    /// The provider refused for good; reservation released.
    Failed,
    /// Called off while recorded, or canceled at the provider.
    Canceled,
    /// It succeeded and the provider took it back; contra transfer posted.
    Reversed,
    /// Rules ended without proof; waits for evidence or a person.
    NeedsReview,
}

impl State {
    pub const ALL: [Self; 9] = [
        Self::Recorded,
        Self::Sending,
        Self::Unknown,
        Self::Processing,
        Self::Succeeded,
        Self::Failed,
        Self::Canceled,
        Self::Reversed,
        Self::NeedsReview,
    ];

    /// The name stored in the database and used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Sending => "sending",
            Self::Unknown => "unknown",
            Self::Processing => "processing",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Reversed => "reversed",
            Self::NeedsReview => "needs_review",
        }
    }

    /// Reads a stored name.
    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// What callers are shown: they need not know how far a pending refund got.
    #[must_use]
    pub const fn shown_as(self) -> &'static str {
        match self {
            Self::Recorded | Self::Sending | Self::Unknown | Self::Processing => "pending",
            other => other.as_str(),
        }
    }

    /// Nothing more is planned for it. Success is final for planning, though the provider may still take it back.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled | Self::Reversed)
    }

    /// What the amount counts as on its payment.
    #[must_use]
    pub const fn counts_as(self) -> CountsAs {
        match self {
            Self::Recorded | Self::Sending | Self::Unknown | Self::Processing | Self::NeedsReview => CountsAs::Reserved,
            Self::Succeeded => CountsAs::Refunded,
            Self::Failed | Self::Canceled | Self::Reversed => CountsAs::Nothing,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an intent's amount weighs on its payment's counters; the counters follow from states and from nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountsAs {
    Reserved,
    Refunded,
    Nothing,
}

/// What the provider says a refund of its own has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PspStatus {
    Processing,
    Succeeded,
    Failed,
    Canceled,
}

/// What moves a refund. Each is a conclusion drawn by the rules in this module's siblings, not a raw answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A create is installed: the first one, or a resend.
    CreateStarted,
    /// Another holder found a create in flight whose outcome nobody recorded.
    TakenOver,
    /// Every create of the intent is proved not executed.
    NothingExecuted,
    /// The call's fate, or that of an earlier one, is open.
    OutcomeOpen,
    /// Refused for good, and no other create is unresolved.
    RefusedForGood,
    /// The provider shows a refund of ours with this status.
    Evidence(PspStatus),
    /// Someone called it off.
    CancelRequested,
    /// Rules ended without proof.
    Parked,
}

impl Event {
    pub const ALL: [Self; 11] = [
        Self::CreateStarted,
        Self::TakenOver,
        Self::NothingExecuted,
        Self::OutcomeOpen,
        Self::RefusedForGood,
        Self::Evidence(PspStatus::Processing),
        Self::Evidence(PspStatus::Succeeded),
        Self::Evidence(PspStatus::Failed),
        Self::Evidence(PspStatus::Canceled),
        Self::CancelRequested,
        Self::Parked,
    ];
}

/// What a transition asks to be written beside the new state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    None,
    /// The one `post` transfer.
    Post,
    /// The one `reverse` transfer.
    Reverse,
    /// A final state was contradicted by proof: record a break, nothing to post.
    Break,
    /// As above, and the refund turned out to have happened: post it.
    PostAndBreak,
}

/// The result of a legal transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub state: State,
    pub effect: Effect,
}

/// A pair of state and event the machine does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} is not legal in state {state}")]
pub struct IllegalTransition {
    pub state: State,
    pub event: Event,
}

/// The one transition function.
pub fn next(state: State, event: Event) -> Result<Step, IllegalTransition> {
    use Event as E;
    use State as S;
    let step = |state, effect| Ok(Step { state, effect });
    match (state, event) {
        (S::Recorded | S::Unknown, E::CreateStarted) => step(S::Sending, Effect::None),
        (S::Sending, E::TakenOver) => step(S::Unknown, Effect::None),
        (S::Recorded | S::Sending | S::Unknown, E::NothingExecuted) => step(S::Recorded, Effect::None),
        (S::Sending | S::Unknown, E::OutcomeOpen) => step(S::Unknown, Effect::None),
        (S::Recorded | S::Sending | S::Unknown | S::NeedsReview, E::RefusedForGood) => step(S::Failed, Effect::None),
        (S::Failed | S::Canceled, E::RefusedForGood) => step(state, Effect::None),
        (S::Recorded, E::CancelRequested) => step(S::Canceled, Effect::None),
        (S::Recorded | S::Sending | S::Unknown | S::Processing | S::NeedsReview, E::Parked) => {
            step(S::NeedsReview, Effect::None)
        }
        // What was learned before stays true when a call tells nothing new.
        (
            S::Recorded | S::Processing | S::NeedsReview | S::Succeeded | S::Failed | S::Canceled | S::Reversed,
            E::OutcomeOpen,
        ) => step(state, Effect::None),
        (S::Processing | S::NeedsReview | S::Succeeded | S::Failed | S::Canceled | S::Reversed, E::NothingExecuted) => {
            step(state, Effect::None)
        }
        (_, E::Evidence(status)) => evidence(state, status).ok_or(IllegalTransition { state, event }),
        _ => Err(IllegalTransition { state, event }),
    }
}

/// A refund of ours was seen at the provider.
fn evidence(state: State, status: PspStatus) -> Option<Step> {
    use PspStatus as P;
    use State as S;
    let (state, effect) = match (state, status) {
        (S::Recorded | S::Sending | S::Unknown | S::Processing | S::NeedsReview, status) => match status {
            P::Processing => (S::Processing, Effect::None),
            P::Succeeded => (S::Succeeded, Effect::Post),
            P::Failed => (S::Failed, Effect::None),
            P::Canceled => (S::Canceled, Effect::None),
        },
        // An older view never sets a success back; only the provider taking the money back does.
        (S::Succeeded, P::Succeeded | P::Processing) => (S::Succeeded, Effect::None),
        (S::Succeeded, P::Failed | P::Canceled) => (S::Reversed, Effect::Reverse),
        (S::Failed | S::Canceled, P::Failed | P::Canceled) => (state, Effect::None),
        (S::Failed | S::Canceled, P::Processing) => (S::Processing, Effect::Break),
        (S::Failed | S::Canceled, P::Succeeded) => (S::Succeeded, Effect::PostAndBreak),
        (S::Reversed, P::Failed | P::Canceled) => (S::Reversed, Effect::None),
        (S::Reversed, P::Processing | P::Succeeded) => return None,
    };
    Some(Step { state, effect })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    fn table() -> String {
        let mut text = String::from(
            "# state x event, printed from jobs/src/refund/state.rs; regenerate with BLESS=1 cargo test -p jobs\n",
        );
        for state in State::ALL {
            for event in Event::ALL {
                let cell = match next(state, event) {
                    Ok(step) => format!("{} {:?}", step.state, step.effect),
                    Err(_) => "illegal".to_owned(),
                };
                writeln!(text, "{:<13}{:<24}{cell}", state.as_str(), format!("{event:?}")).unwrap();
            }
        }
        text
    }

    #[test]
    fn the_whole_table_is_the_checked_in_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/refund/transitions.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, table()).unwrap();
        }
        assert_eq!(
            table(),
            std::fs::read_to_string(path).unwrap(),
            "transition table changed: review it, then BLESS=1"
        );
    }

    #[test]
    fn a_post_happens_only_on_the_way_into_succeeded_and_a_reverse_only_out_of_it() {
        for state in State::ALL {
            for event in Event::ALL {
                let Ok(step) = next(state, event) else { continue };
                let posts = matches!(step.effect, Effect::Post | Effect::PostAndBreak);
                assert_eq!(posts, step.state == State::Succeeded && state != State::Succeeded, "{state} {event:?}");
                assert_eq!(
                    step.effect == Effect::Reverse,
                    step.state == State::Reversed && state == State::Succeeded,
                    "{state} {event:?}"
                );
            }
        }
    }

    #[test]
    fn stored_names_read_back() {
        for state in State::ALL {
            assert_eq!(State::from_stored(state.as_str()), Some(state));
        }
    }
}
