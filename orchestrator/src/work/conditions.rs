//! What must hold for a create to start: clocks agree, the provider is not paused, nobody asked us to stop.
//!
//! The database's clock decides. When it and the local clock differ by over 30 s, or it went back by over 30 s, no create starts
//! until they agree again and the highest time seen is passed.

use crate::clock::{Boottime, Clock};
use chrono::{DateTime, TimeDelta, Utc};
use jobs::refund::resend::Now;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How far the clocks may differ; beyond it no creates are sent.
pub const CLOCK_DIFFERENCE_MAX: TimeDelta = TimeDelta::seconds(30);

#[derive(Debug, Default)]
struct Seen {
    /// The database's time, and the local monotonic time it was read at.
    latest: Option<(DateTime<Utc>, Boottime)>,
    highest: Option<DateTime<Utc>>,
    difference: TimeDelta,
    went_back: bool,
    paused: BTreeSet<String>,
}

/// Conditions as last seen; shared by all loops of a worker and by readiness.
#[derive(Debug)]
pub struct Conditions {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
    stopping: watch::Sender<bool>,
}

impl Conditions {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, seen: Mutex::default(), stopping: watch::Sender::new(false) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A time read from the database.
    pub(super) fn observe_database_time(&self, database: DateTime<Utc>) {
        let (wall, boottime) = (self.clock.wall(), self.clock.boottime());
        let mut seen = self.seen();
        seen.latest = Some((database, boottime));
        seen.difference = database - wall;
        match seen.highest {
            Some(highest) if database < highest => {
                if highest - database > CLOCK_DIFFERENCE_MAX {
                    seen.went_back = true;
                }
            }
            _ => {
                seen.highest = Some(database);
                seen.went_back = false;
            }
        }
    }

    /// Now, by the database's clock as last read and the local monotonic clock since.
    pub(super) fn now(&self) -> Now {
        let (local, boottime) = (self.clock.wall(), self.clock.boottime());
        let database = match self.seen().latest {
            Some((database, at)) => {
                database + TimeDelta::from_std(boottime.saturating_since(at)).unwrap_or(TimeDelta::zero())
            }
            None => local,
        };
        Now { database, local }
    }

    pub(super) fn set_paused(&self, paused: BTreeSet<String>) {
        self.seen().paused = paused;
    }

    pub(super) fn creates_allowed(&self, psp: &str) -> bool {
        let seen = self.seen();
        clock_trouble(&seen).is_none() && !seen.paused.contains(psp)
    }

    /// Why the clocks stop creates, if they do.
    #[must_use]
    pub fn clock_trouble(&self) -> Option<String> {
        clock_trouble(&self.seen())
    }

    /// Database clock minus local clock, in milliseconds.
    #[must_use]
    pub fn clock_difference_ms(&self) -> i64 {
        self.seen().difference.num_milliseconds()
    }

    pub(super) fn stop_intake(&self) {
        self.stopping.send_replace(true);
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    pub(super) async fn stopping(&self) {
        let mut receiver = self.stopping.subscribe();
        if receiver.wait_for(|stopping| *stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn clock_trouble(seen: &Seen) -> Option<String> {
    if seen.went_back {
        return Some(format!(
            "the database's clock went back by over {} s: no creates until it passes the highest time seen",
            CLOCK_DIFFERENCE_MAX.num_seconds()
        ));
    }
    (seen.difference.abs() > CLOCK_DIFFERENCE_MAX).then(|| {
        format!(
            "the database's clock and the local one differ by {} s: no creates until they agree within {} s",
            seen.difference.num_seconds(),
            CLOCK_DIFFERENCE_MAX.num_seconds()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimulatedClock;
    use std::time::Duration;

    #[test]
    fn creates_stop_while_clocks_disagree_or_the_database_went_back() {
        let start = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let clock = Arc::new(SimulatedClock::new(start));
        let conditions = Conditions::new(clock.clone());
        let check = |database: DateTime<Utc>, allowed: bool| {
            conditions.observe_database_time(database);
            assert_eq!(conditions.creates_allowed("acme"), allowed, "{database}");
        };
        check(start, true);
        check(start + TimeDelta::seconds(29), true);
        check(start + TimeDelta::seconds(31), false);
        check(start + TimeDelta::seconds(2), true);
        clock.advance(Duration::from_secs(100));
        check(start + TimeDelta::seconds(100), true);
        clock.set_wall(start + TimeDelta::seconds(50));
        check(start + TimeDelta::seconds(60), false);
        check(start + TimeDelta::seconds(75), false);
        clock.set_wall(start + TimeDelta::seconds(101));
        check(start + TimeDelta::seconds(101), true);
    }
}
