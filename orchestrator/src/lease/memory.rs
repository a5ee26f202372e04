//! Leases in memory: the executable specification, and what simulation runs on.
//!
//! A session lives until its expiry by the clock given; a hold lives as long as its session. One counter serves all keys and only
//! rises, so that the tokens of a key rise also after release, session end and epoch. Dead sessions are taken out before each
//! request looks, so nothing expired can claim, renew or be listed.
//!
//! Across a crash nothing is left, counters included: only for processes whose store goes with them. Left out: registration of
//! the generation with a database; the epoch is raised by hand.

use super::{Claim, Hold, LeaseError, Leases, Renewal, ResourceKey, SessionGrant, check_count};
use crate::clock::{Boottime, Clock};
use async_trait::async_trait;
use jobs::ids::{SessionId, Token};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
struct MemorySession {
    ttl: Duration,
    expires_at: Boottime,
}

#[derive(Debug, Clone, Copy)]
struct MemoryHold {
    session: SessionId,
    token: Token,
}

#[derive(Debug)]
struct State {
    epoch: i64,
    counter: i64,
    sessions: BTreeMap<SessionId, MemorySession>,
    holds: BTreeMap<ResourceKey, MemoryHold>,
}

impl State {
    fn end_dead_sessions(&mut self, now: Boottime) {
        let before = self.sessions.len();
        self.sessions.retain(|_, session| now < session.expires_at);
        if self.sessions.len() < before {
            let Self { sessions, holds, .. } = self;
            holds.retain(|_, hold| sessions.contains_key(&hold.session));
        }
    }

    fn next_token(&mut self) -> Token {
        self.counter += 1;
        Token { epoch: self.epoch, counter: self.counter }
    }
}

/// A lease service inside this process; share it with [`Arc`].
#[derive(Debug)]
pub struct MemoryLeases {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl MemoryLeases {
    /// A service at epoch 1 without sessions.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { epoch: 1, counter: 0, sessions: BTreeMap::new(), holds: BTreeMap::new() };
        Self { clock, state: Mutex::new(state) }
    }

    /// A new generation: every session ends. Returns the epoch that tokens carry from now on.
    pub fn raise_epoch(&self) -> i64 {
        let mut state = self.state();
        state.epoch += 1;
        state.sessions.clear();
        state.holds.clear();
        state.epoch
    }

    /// Ends a session as if its TTL had run out.
    pub fn end_session(&self, session: SessionId) {
        let mut state = self.state();
        state.sessions.remove(&session);
        state.holds.retain(|_, hold| hold.session != session);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end_dead_sessions(self.clock.boottime());
        state
    }
}

#[async_trait]
impl Leases for MemoryLeases {
    fn backend(&self) -> &'static str {
        "memory"
    }

    async fn open_session(&self, session: SessionId, _label: &str, ttl: Duration) -> Result<SessionGrant, LeaseError> {
        let mut state = self.state();
        if state.sessions.contains_key(&session) {
            return Err(LeaseError::SessionLost(session));
        }
        let expires_at = self.clock.boottime().plus(ttl);
        state.sessions.insert(session, MemorySession { ttl, expires_at });
        Ok(SessionGrant { session, ttl })
    }

    async fn renew(&self, session: SessionId) -> Result<Renewal, LeaseError> {
        let now = self.clock.boottime();
        match self.state().sessions.get_mut(&session) {
            Some(found) => {
                found.expires_at = now.plus(found.ttl);
                Ok(Renewal::Renewed)
            }
            None => Ok(Renewal::Lost),
        }
    }

    async fn close_session(&self, session: SessionId) -> Result<(), LeaseError> {
        self.end_session(session);
        Ok(())
    }

    async fn claim(&self, session: SessionId, keys: &[ResourceKey]) -> Result<Vec<Claim>, LeaseError> {
        check_count(keys.len())?;
        let mut state = self.state();
        if !state.sessions.contains_key(&session) {
            return Err(LeaseError::SessionLost(session));
        }
        let mut claims = Vec::with_capacity(keys.len());
        for key in keys {
            if state.holds.contains_key(key) {
                claims.push(Claim::Taken);
                continue;
            }
            let token = state.next_token();
            state.holds.insert(key.clone(), MemoryHold { session, token });
            claims.push(Claim::Held(token));
        }
        Ok(claims)
    }

    async fn release(&self, session: SessionId, holds: &[Hold]) -> Result<(), LeaseError> {
        check_count(holds.len())?;
        let mut state = self.state();
        for hold in holds {
            if state.holds.get(&hold.key).is_some_and(|now| now.token == hold.token && now.session == session) {
                state.holds.remove(&hold.key);
            }
        }
        Ok(())
    }

    async fn holds(&self, session: SessionId) -> Result<Vec<Hold>, LeaseError> {
        let state = self.state();
        let mine = state.holds.iter().filter(|(_, hold)| hold.session == session);
        Ok(mine.map(|(key, hold)| Hold { key: key.clone(), token: hold.token }).collect())
    }

    async fn live_sessions(&self) -> Result<Vec<SessionId>, LeaseError> {
        Ok(self.state().sessions.keys().copied().collect())
    }
}
