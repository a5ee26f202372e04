//! A hold in a worker's hand.
//!
//! A hold is good while the session it was claimed under is trusted and its step is within the hold maximum; once it is not, it
//! never is again. Dropping it without a release leaves the key at the service for the next sweep to give back.
//!
//! Across a crash nothing of it remains: the session ends after its TTL.

use super::session::Session;
use super::{Hold, ResourceKey};
use crate::clock::Boottime;
use jobs::ids::{SessionId, Token};
use std::sync::Arc;

/// One resource, held under the session it was claimed under and no other.
#[derive(Debug)]
pub struct HeldLease {
    pub hold: Hold,
    session: Arc<Session>,
    claimed_at: Boottime,
    step_began: Boottime,
    over: bool,
}

impl HeldLease {
    /// For the session, which has entered it in its book.
    pub(super) fn new(hold: Hold, session: Arc<Session>, claimed_at: Boottime) -> Self {
        Self { hold, session, claimed_at, step_began: claimed_at, over: false }
    }

    #[must_use]
    pub fn key(&self) -> &ResourceKey {
        &self.hold.key
    }

    #[must_use]
    pub fn token(&self) -> Token {
        self.hold.token
    }

    #[must_use]
    pub fn session_id(&self) -> SessionId {
        self.session.id()
    }

    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    #[must_use]
    pub fn claimed_at(&self) -> Boottime {
        self.claimed_at
    }

    /// Whether a call may start or a write be sent now: the session is trusted and the step is within the hold maximum.
    #[must_use]
    pub fn is_good(&self) -> bool {
        !self.over && self.session.is_trusted() && self.session.now() < self.step_ends()
    }

    /// Begins the next step; the hold maximum counts from here. A hold that is no longer good stays so.
    pub fn begin_step(&mut self) {
        if !self.is_good() {
            self.over = true;
            return;
        }
        let now = self.session.now();
        if self.session.step_began(&self.hold, now) {
            self.step_began = now;
        } else {
            self.over = true;
        }
    }

    /// Waits until the hold is no longer good, so that a task can be cancelled: `select!` it against the work.
    pub async fn ended(&self) {
        let mut pulse = self.session.pulse();
        while self.is_good() {
            // The session outlives this hold, so its pulse can not close; were it to, the hold would be over.
            if pulse.changed().await.is_err() {
                return;
            }
        }
    }

    fn step_ends(&self) -> Boottime {
        self.step_began.plus(self.session.parameters().hold_max)
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.session.forget(&self.hold);
    }
}
