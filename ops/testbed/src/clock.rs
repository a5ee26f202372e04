//! The only file of this crate that asks for the time or sleeps.
//!
//! Real time on purpose: what is awaited here are other processes, which no simulated clock moves.
#![expect(clippy::disallowed_methods, reason = "deadlines on real processes need the real clock, in this file only")]

use std::time::{Duration, Instant};

use crate::error::Error;

/// How often a condition of another process is looked at again: short against its start, long against one look.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A point in time after which waiting is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    started: Instant,
    after: Duration,
}

impl Deadline {
    pub(crate) fn after(after: Duration) -> Deadline {
        Deadline { started: Instant::now(), after }
    }

    pub(crate) fn passed(&self) -> bool {
        self.started.elapsed() >= self.after
    }
}

/// Blocks until `condition` answers `Some`, looking every few milliseconds; `what` names the event in the error.
pub fn wait<T>(what: &str, after: Duration, mut condition: impl FnMut() -> Option<T>) -> Result<T, Error> {
    let deadline = Deadline::after(after);
    loop {
        if let Some(found) = condition() {
            return Ok(found);
        }
        if deadline.passed() {
            return Err(Error::TimedOut { what: what.to_owned(), after, context: String::new() });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
