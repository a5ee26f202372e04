//! The script at the edge: a lease service that can go silent, fail, or answer late; and the clock the timers run on.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use jobs::ids::SessionId;
use orchestrator::clock::{Boottime, Clock};
use orchestrator::lease::{Claim, Hold, LeaseError, Leases, MemoryLeases, Renewal, ResourceKey, SessionGrant};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Goes with tokio's paused time, and further when the machine is suspended.
#[derive(Debug)]
pub(super) struct PausedClock {
    started: Instant,
    suspended_seconds: AtomicU64,
}

impl PausedClock {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), suspended_seconds: AtomicU64::new(0) }
    }

    /// The machine sleeps: timers stand still, CLOCK_BOOTTIME does not.
    pub(super) fn suspend(&self, seconds: u64) {
        self.suspended_seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for PausedClock {
    fn wall(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + self.boottime().0
    }

    fn boottime(&self) -> Boottime {
        Boottime(self.started.elapsed() + Duration::from_secs(self.suspended_seconds.load(Ordering::SeqCst)))
    }
}

/// How the service behaves from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Answering,
    /// Nothing arrives, nothing is answered.
    Silent,
    Failing,
    /// A claim takes effect and is not answered; the rest is.
    ClaimsUnanswered,
}

#[derive(Debug)]
pub(super) struct ScriptedLeases {
    pub(super) memory: MemoryLeases,
    mood: Mutex<Mood>,
    pub(super) opens: AtomicUsize,
    pub(super) renewals: AtomicUsize,
}

impl ScriptedLeases {
    pub(super) fn new(memory: MemoryLeases) -> Self {
        Self { memory, mood: Mutex::new(Mood::Answering), opens: AtomicUsize::new(0), renewals: AtomicUsize::new(0) }
    }

    pub(super) fn become_(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// How many holds the service knows of the session.
    pub(super) async fn held(&self, session: SessionId) -> usize {
        self.memory.holds(session).await.unwrap().len()
    }

    async fn edge(&self) -> Result<(), LeaseError> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Silent => std::future::pending().await,
            Mood::Failing => Err(LeaseError::Unavailable("scripted failure".to_owned())),
            Mood::Answering | Mood::ClaimsUnanswered => Ok(()),
        }
    }
}

#[async_trait]
impl Leases for ScriptedLeases {
    fn backend(&self) -> &'static str {
        "memory"
    }

    async fn open_session(&self, session: SessionId, label: &str, ttl: Duration) -> Result<SessionGrant, LeaseError> {
        self.opens.fetch_add(1, Ordering::SeqCst);
        self.edge().await?;
        self.memory.open_session(session, label, ttl).await
    }

    async fn renew(&self, session: SessionId) -> Result<Renewal, LeaseError> {
        self.renewals.fetch_add(1, Ordering::SeqCst);
        self.edge().await?;
        self.memory.renew(session).await
    }

    async fn close_session(&self, session: SessionId) -> Result<(), LeaseError> {
        self.edge().await?;
        self.memory.close_session(session).await
    }

    async fn claim(&self, session: SessionId, keys: &[ResourceKey]) -> Result<Vec<Claim>, LeaseError> {
        self.edge().await?;
        let answers = self.memory.claim(session, keys).await;
        let mood = *self.mood.lock().unwrap();
        if mood == Mood::ClaimsUnanswered { std::future::pending().await } else { answers }
    }

    async fn release(&self, session: SessionId, holds: &[Hold]) -> Result<(), LeaseError> {
        self.edge().await?;
        self.memory.release(session, holds).await
    }

    async fn holds(&self, session: SessionId) -> Result<Vec<Hold>, LeaseError> {
        self.edge().await?;
        self.memory.holds(session).await
    }

    async fn live_sessions(&self) -> Result<Vec<SessionId>, LeaseError> {
        self.edge().await?;
        self.memory.live_sessions().await
    }
}
