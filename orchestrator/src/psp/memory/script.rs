//! What tests and simulations can make the memory provider do.

use jobs::money::Money;
use jobs::refund::outcome::Rejection;
use jobs::refund::state::PspStatus;
use std::time::Duration;

/// When a create executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executes {
    AtOnce,
    /// So much later by the provider's clock, whether or not the caller still waits.
    After(Duration),
    /// When the intent is released.
    OnRelease,
    Never,
}

/// What the caller of a create is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tells {
    /// What came of it.
    Truth,
    /// Nothing: the connection breaks.
    Nothing,
    /// Nothing until the intent is released, then what came of it.
    NothingUntilReleased,
    /// A server error, which is stored under the key and repeated for its life, whatever came of the create.
    StoredError,
    /// Too many requests; the key is not touched and nothing executes.
    NotExecuted { retry_after_ms: Option<u64> },
    /// Refused; nothing executes. Stored under the key if it says so.
    Refused(Rejection),
}

/// How one create goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub executes: Executes,
    pub tells: Tells,
    /// What the refund starts as.
    pub status: PspStatus,
    pub reason: Option<String>,
    /// Lookups by reference do not show the refund for this long.
    pub hidden_for: Duration,
    /// The refund is made with this amount instead of the one asked for.
    pub makes: Option<Money>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            executes: Executes::AtOnce,
            tells: Tells::Truth,
            status: PspStatus::Succeeded,
            reason: None,
            hidden_for: Duration::ZERO,
            makes: None,
        }
    }
}

impl Script {
    /// Executed, and the caller is not told.
    #[must_use]
    pub fn answer_lost() -> Self {
        Self { tells: Tells::Nothing, ..Self::default() }
    }

    /// Never executed, and the caller is not told.
    #[must_use]
    pub fn dropped() -> Self {
        Self { executes: Executes::Never, tells: Tells::Nothing, ..Self::default() }
    }

    #[must_use]
    pub fn not_executed(retry_after_ms: Option<u64>) -> Self {
        Self { tells: Tells::NotExecuted { retry_after_ms }, ..Self::default() }
    }

    #[must_use]
    pub fn refused(rejection: Rejection) -> Self {
        Self { tells: Tells::Refused(rejection), ..Self::default() }
    }

    /// Taken, to be decided later with [`super::MemoryProvider::decide`].
    #[must_use]
    pub fn pending(reason: &str) -> Self {
        Self { status: PspStatus::Processing, reason: Some(reason.to_owned()), ..Self::default() }
    }

    /// Executed, the answer lost, and lookups lag behind.
    #[must_use]
    pub fn lagging(hidden_for: Duration) -> Self {
        Self { hidden_for, ..Self::answer_lost() }
    }

    /// Executed at once; the caller hears nothing until the intent is released.
    #[must_use]
    pub fn held() -> Self {
        Self { tells: Tells::NothingUntilReleased, ..Self::default() }
    }

    /// Executes only when the intent is released, long after the caller gave up if need be.
    #[must_use]
    pub fn held_back() -> Self {
        Self { executes: Executes::OnRelease, ..Self::held() }
    }

    /// The connection breaks and the create executes later.
    #[must_use]
    pub fn late(after: Duration) -> Self {
        Self { executes: Executes::After(after), ..Self::answer_lost() }
    }

    /// A server error that the key repeats for its life.
    #[must_use]
    pub fn stored_error(executes: Executes) -> Self {
        Self { executes, tells: Tells::StoredError, ..Self::default() }
    }
}

/// How one lookup goes, when not well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupScript {
    /// The reading breaks off.
    BreaksOff,
    NotExecuted {
        retry_after_ms: Option<u64>,
    },
    /// No answer until the intent is released, then the truth of that moment.
    Held,
}

/// What happened to one intent at the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub creates: u64,
    /// Refunds made: more than one is the damage everything here is about.
    pub executed: u64,
    /// Creates answered from the key's stored result.
    pub repeated: u64,
    pub lookups: u64,
}
