//! One opened session: what was claimed under it is good only as long as it is trusted.
//!
//! States: trusted until a point of CLOCK_BOOTTIME that each renewal moves on; once that point has passed or the service has said so it is lost for
//! good. The keeper opens, renews and ends it; workers claim and release through it.
//!
//! Across a crash nothing is kept: the next process opens another session. A claim whose answer did not come may have taken effect;
//! the keeper's sweep lists the session's holds and gives back those that nobody here knows.

use super::book::{Book, Flight};
use super::hold::HeldLease;
use super::parameters::LeaseParameters;
use super::{CLAIM_MAX, Claim, Hold, LeaseError, Leases, ResourceKey};
use crate::clock::{Boottime, Clock};
use crate::metrics::Metrics;
use jobs::ids::SessionId;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// What every session of a replica has in common.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub(super) leases: Arc<dyn Leases>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) parameters: LeaseParameters,
    pub(super) metrics: Metrics,
}

impl Surroundings {
    /// A request with its deadline.
    pub(super) async fn bounded<T>(
        &self,
        what: &'static str,
        request: impl Future<Output = Result<T, LeaseError>>,
    ) -> Result<T, LeaseError> {
        let limit = self.parameters.request_timeout;
        match tokio::time::timeout(limit, request).await {
            Ok(answer) => answer,
            Err(_) => Err(LeaseError::Unavailable(format!("{what}: silent for {limit:?}"))),
        }
    }
}

/// One opened session, shared by everything claimed under it.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    around: Surroundings,
    trusted_until_ns: AtomicU64,
    lost: AtomicBool,
    book: Mutex<Book>,
    pulse: watch::Sender<u64>,
    sweep_wanted: Notify,
}

impl Session {
    pub(super) fn new(id: SessionId, around: Surroundings, trusted_until: Boottime) -> Arc<Self> {
        Arc::new(Self {
            id,
            around,
            trusted_until_ns: AtomicU64::new(nanoseconds(trusted_until)),
            lost: AtomicBool::new(false),
            book: Mutex::new(Book::default()),
            pulse: watch::Sender::new(0),
            sweep_wanted: Notify::new(),
        })
    }

    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    #[must_use]
    pub fn parameters(&self) -> &LeaseParameters {
        &self.around.parameters
    }

    /// Whether the service is sure to keep this session's holds now. Asked before each call and each write.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        !self.lost.load(Ordering::Acquire) && nanoseconds(self.now()) < self.trusted_until_ns.load(Ordering::Acquire)
    }

    /// How many holds workers have in hand.
    #[must_use]
    pub fn held_count(&self) -> usize {
        self.book().held_count()
    }

    /// Claims what is free; answers in the order of the keys, `None` where someone else has it. More than [`CLAIM_MAX`] keys go in
    /// several requests; if a later one fails, what the earlier ones won is given back by the sweep.
    pub async fn claim(self: &Arc<Self>, keys: &[ResourceKey]) -> Result<Vec<Option<HeldLease>>, LeaseError> {
        let mut results = Vec::with_capacity(keys.len());
        for part in keys.chunks(CLAIM_MAX) {
            results.extend(self.claim_part(part).await?);
        }
        Ok(results)
    }

    async fn claim_part(self: &Arc<Self>, keys: &[ResourceKey]) -> Result<Vec<Option<HeldLease>>, LeaseError> {
        if !self.is_trusted() {
            return Err(LeaseError::SessionLost(self.id));
        }
        let sent = self.now();
        let flight = InFlight::depart(self, keys);
        let answer = self.around.bounded("claim", self.around.leases.claim(self.id, keys)).await;
        let (metrics, backend) = (&self.around.metrics, self.around.leases.backend());
        metrics.lock_waited(self.now().saturating_since(sent));
        let claims = match answer {
            Ok(claims) => claims,
            Err(error) => {
                metrics.lock_acquired(backend, "error", keys.len());
                self.note(&error);
                return Err(error);
            }
        };
        let now = self.now();
        let won = |(key, claim): (&ResourceKey, &Claim)| match claim {
            Claim::Held(token) => Some(Hold { key: key.clone(), token: *token }),
            Claim::Taken => None,
        };
        let holds: Vec<Option<Hold>> = keys.iter().zip(&claims).map(won).collect();
        let arrived: Vec<Hold> = holds.iter().flatten().cloned().collect();
        metrics.lock_acquired(backend, "held", arrived.len());
        metrics.lock_acquired(backend, "taken", keys.len() - arrived.len());
        flight.arrive(&arrived, now);
        // The hold maximum counts from when the answer was read, trust from the session.
        Ok(holds.into_iter().map(|hold| hold.map(|hold| HeldLease::new(hold, Arc::clone(self), now))).collect())
    }

    /// Gives holds back. Those whose release is not answered are given back by the sweep; those of a lost session are gone already.
    pub async fn release(&self, leases: Vec<HeldLease>) -> Result<(), LeaseError> {
        let now = self.now();
        for lease in &leases {
            self.around.metrics.lock_held(now.saturating_since(lease.claimed_at()));
        }
        let holds: Vec<Hold> = leases.iter().map(|lease| lease.hold.clone()).collect();
        let result = self.release_holds(&holds).await;
        // Only now does the book forget them: until the answer came they were not free.
        drop(leases);
        result
    }

    pub(super) async fn release_holds(&self, holds: &[Hold]) -> Result<(), LeaseError> {
        for part in holds.chunks(CLAIM_MAX) {
            if self.is_lost() {
                return Ok(());
            }
            let request = self.around.leases.release(self.id, part);
            if let Err(error) = self.around.bounded("release", request).await {
                self.note(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives back what the service says is ours and nobody here knows. Returns how many.
    pub(super) async fn sweep(&self) -> Result<usize, LeaseError> {
        let answer = self.around.bounded("holds", self.around.leases.holds(self.id)).await;
        let listed = answer.inspect_err(|error| self.note(error))?;
        let strays = self.book().strays(listed);
        self.release_holds(&strays).await?;
        Ok(strays.len())
    }

    /// Takes the holds past the hold maximum from their owners and gives them back. Returns how many.
    pub(super) async fn expire_holds(&self) -> Result<usize, LeaseError> {
        let expired = self.book().take_expired(self.now(), self.around.parameters.hold_max);
        if expired.is_empty() {
            return Ok(0);
        }
        for _ in &expired {
            self.around.metrics.hold_expired();
        }
        self.wake_holders();
        self.release_holds(&expired).await?;
        Ok(expired.len())
    }

    /// A renewal was answered. Trust that has ended does not come back: false if it has.
    pub(super) fn trust_until(&self, until: Boottime) -> bool {
        let trusted = self.is_trusted();
        if trusted {
            self.trusted_until_ns.store(nanoseconds(until), Ordering::Release);
        }
        trusted
    }

    /// The session is over, for good.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.wake_holders();
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Waits until the session was given up.
    pub(super) async fn lost(&self) {
        let mut pulse = self.pulse();
        while !self.is_lost() {
            if pulse.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until a request went unanswered, so that strays are likely.
    pub(super) async fn sweep_wanted(&self) {
        self.sweep_wanted.notified().await;
    }

    pub(super) fn now(&self) -> Boottime {
        self.around.clock.boottime()
    }

    pub(super) fn pulse(&self) -> watch::Receiver<u64> {
        self.pulse.subscribe()
    }

    pub(super) fn step_began(&self, hold: &Hold, now: Boottime) -> bool {
        self.book().step_began(hold, now)
    }

    pub(super) fn forget(&self, hold: &Hold) {
        self.book().forget(hold);
    }

    fn wake_holders(&self) {
        self.pulse.send_modify(|pulses| *pulses = pulses.wrapping_add(1));
    }

    /// What an error of any request says about the session.
    fn note(&self, error: &LeaseError) {
        match error {
            LeaseError::SessionLost(_) | LeaseError::WrongGeneration(_) => self.lose(),
            LeaseError::Unavailable(_) => self.sweep_wanted.notify_one(),
            LeaseError::TooMany { .. } => {}
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim on its way; taken out of the book also when the claim is dropped.
struct InFlight<'session> {
    session: &'session Session,
    flight: Option<Flight>,
}

impl<'session> InFlight<'session> {
    fn depart(session: &'session Session, keys: &[ResourceKey]) -> Self {
        Self { session, flight: Some(session.book().depart(keys)) }
    }

    fn arrive(mut self, won: &[Hold], now: Boottime) {
        if let Some(flight) = self.flight.take() {
            self.session.book().arrive(flight, won, now);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(flight) = self.flight.take() {
            let now = self.session.now();
            self.session.book().arrive(flight, &[], now);
            self.session.sweep_wanted.notify_one();
        }
    }
}

fn nanoseconds(time: Boottime) -> u64 {
    u64::try_from(time.0.as_nanos()).unwrap_or(u64::MAX)
}
