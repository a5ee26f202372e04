//! The mock's clock: the host's time plus an offset that only moves forward.
//!
//! Everything that the mock decides by time (key lifetimes, list lag, late changes, late execution) asks this clock, so that a test
//! moves 24 hours in one call. Plain latency is real time: a caller's socket timeout cannot be moved. This is the only file of the
//! crate that asks the host for the time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Default)]
pub(crate) struct Clock {
    offset_ms: AtomicI64,
}

/// A point in monotonic time, to measure how long a call took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the one place of this crate that asks for the wall clock")]
    pub(crate) fn now_ms(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let host_ms = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        host_ms.saturating_add(self.offset_ms())
    }

    pub(crate) fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }

    /// Moves the clock forward; it never goes back, since keys and lists would then contradict answers already given.
    pub(crate) fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        self.offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Mark {
    #[expect(clippy::disallowed_methods, reason = "the one place of this crate that asks for the monotonic clock")]
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
