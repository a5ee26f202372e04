//! Leases: who may work on what, and the numbers that let the database refuse everyone else.
//!
//! A replica opens one session and claims holds under it in bulk. The lease service only hands out numbers; no promise rests on
//! two replicas never believing they hold the same thing. Implementations: sql (PostgreSQL, SQLite), memory; etcd fits the same trait.
//!
//! Across a crash: a session that is not renewed ends with its holds after its TTL. A claim whose answer was lost may have taken
//! effect: its holds are found by [`Leases::holds`] and released.

mod book;
mod hold;
pub mod keeper;
pub mod memory;
mod order;
pub mod parameters;
pub mod register;
pub mod renewal;
pub mod session;
mod upkeep;

pub use hold::HeldLease;
pub use keeper::SessionKeeper;
pub use memory::MemoryLeases;
pub use parameters::LeaseParameters;
pub use session::Session;

pub(crate) use order::ClaimOrder;

use async_trait::async_trait;
use jobs::ids::{IntentId, SessionId, Token};
use std::time::Duration;

/// Most keys in one claim or release.
pub const CLAIM_MAX: usize = 1_000;

/// Refuses a request of more keys than one may take.
pub(crate) fn check_count(count: usize) -> Result<(), LeaseError> {
    if count > CLAIM_MAX { Err(LeaseError::TooMany { count }) } else { Ok(()) }
}

/// What is held, e.g. `intent/r-1`. Unique within an environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey(pub String);

/// The key of an intent.
#[must_use]
pub fn intent_key(intent_id: &IntentId) -> ResourceKey {
    ResourceKey(format!("intent/{intent_id}"))
}

/// One resource held under a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    pub key: ResourceKey,
    pub token: Token,
}

/// An opened session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionGrant {
    pub session: SessionId,
    pub ttl: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Renewal {
    /// Alive for a full TTL, counted from when the request was sent.
    Renewed,
    /// The service does not know the session any more.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    Held(Token),
    /// Someone else's session holds it.
    Taken,
}

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// No answer in time. Whether it took effect is unknown.
    #[error("the lease service did not answer: {0}")]
    Unavailable(String),
    /// The session is gone; everything claimed under it is lost.
    #[error("session {0} is gone")]
    SessionLost(SessionId),
    /// The service is not the one the database knows: names both.
    #[error("{0}")]
    WrongGeneration(String),
    #[error("{count} keys in one request, at most {CLAIM_MAX}")]
    TooMany { count: usize },
}

/// A lease service.
#[async_trait]
pub trait Leases: Send + Sync + std::fmt::Debug {
    /// The name used in metrics and messages: `sql`, `memory`, `etcd`.
    fn backend(&self) -> &'static str;

    /// Opens a session under a random identity; the label (host name, process id) is for people. Checks or registers the
    /// generation of the service.
    async fn open_session(&self, session: SessionId, label: &str, ttl: Duration) -> Result<SessionGrant, LeaseError>;

    async fn renew(&self, session: SessionId) -> Result<Renewal, LeaseError>;

    /// Ends the session and its holds. Ending one that is gone is not an error.
    async fn close_session(&self, session: SessionId) -> Result<(), LeaseError>;

    /// Claims what is free, in one request; the answers are in the order of the keys, the same key twice is taken the second
    /// time. A key already held by this very session is `Taken` too: a hold has one owner inside the replica.
    /// Tokens of one key rise from claim to claim, also after release and after the session's end.
    async fn claim(&self, session: SessionId, keys: &[ResourceKey]) -> Result<Vec<Claim>, LeaseError>;

    /// Gives holds back; one whose token is not the current one is left alone.
    async fn release(&self, session: SessionId, holds: &[Hold]) -> Result<(), LeaseError>;

    /// What the service says this session holds, to find strays of unanswered claims.
    async fn holds(&self, session: SessionId) -> Result<Vec<Hold>, LeaseError>;

    /// Sessions that are alive now.
    async fn live_sessions(&self) -> Result<Vec<SessionId>, LeaseError>;
}
