//! The only place that asks for the time.
//!
//! Decision times come from the database; the local wall clock only confirms them. Trust windows and timeouts are measured on
//! CLOCK_BOOTTIME, which goes on while the machine is suspended, and is not moved by anyone setting the time.

#![expect(clippy::disallowed_methods, reason = "this is the file the ban points to")]

use chrono::{DateTime, Utc};
use std::sync::Mutex;
use std::time::Duration;

/// A point on the monotonic clock that counts suspended time; only differences mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boottime(pub Duration);

impl Boottime {
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Where time comes from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The local wall clock; anyone may set it.
    fn wall(&self) -> DateTime<Utc>;
    fn boottime(&self) -> Boottime;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn boottime(&self) -> Boottime {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Boottime(Duration::new(seconds, nanoseconds))
    }
}

/// Clocks that stand still until told, or go with tokio's (paused) time, for tests and simulation.
#[derive(Debug)]
pub struct SimulatedClock {
    now: Mutex<(DateTime<Utc>, Boottime)>,
    follows: Option<tokio::time::Instant>,
}

impl SimulatedClock {
    #[must_use]
    pub fn new(wall: DateTime<Utc>) -> Self {
        Self { now: Mutex::new((wall, Boottime(Duration::from_secs(1_000)))), follows: None }
    }

    /// Starts at `wall` and goes with tokio's time.
    #[must_use]
    pub fn following_tokio(wall: DateTime<Utc>) -> Self {
        Self { follows: Some(tokio::time::Instant::now()), ..Self::new(wall) }
    }

    fn followed(&self) -> Duration {
        self.follows.map_or(Duration::ZERO, |start| start.elapsed())
    }

    /// Both clocks go on.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        now.0 += by;
        now.1 = now.1.plus(by);
    }

    /// Someone sets the wall clock; the monotonic one does not notice.
    pub fn set_wall(&self, wall: DateTime<Utc>) {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0 = wall - self.followed();
    }
}

impl Clock for SimulatedClock {
    fn wall(&self) -> DateTime<Utc> {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0 + self.followed()
    }

    fn boottime(&self) -> Boottime {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).1.plus(self.followed())
    }
}
