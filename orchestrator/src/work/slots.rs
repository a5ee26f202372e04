//! A provider's concurrency and rate.

use crate::clock::Boottime;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many holds a provider may have open.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    total: usize,
}

/// One of them, given back on drop.
pub(super) type Slot = OwnedSemaphorePermit;

impl Slots {
    pub(super) fn new(total: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(total)), total }
    }

    /// Waits until enough are free for a batch worth its commits, but no longer than `linger` once one is; then takes up to `wanted`.
    pub(super) async fn take(&self, wanted: usize, linger: Duration) -> Vec<Slot> {
        let worth_it = u32::try_from((self.total / 4).clamp(1, wanted)).unwrap_or(1);
        let many = tokio::time::timeout(linger, self.free.clone().acquire_many_owned(worth_it)).await;
        let first = match many {
            Ok(taken) => taken,
            Err(_) => self.free.clone().acquire_owned().await,
        };
        let Ok(mut first) = first else { return Vec::new() };
        let mut slots = Vec::with_capacity(wanted);
        while let Some(one) = first.split(1) {
            slots.push(one);
        }
        while slots.len() < wanted
            && let Ok(one) = self.free.clone().try_acquire_owned()
        {
            slots.push(one);
        }
        slots
    }
}

/// How many calls are open.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(AtomicUsize);

impl OpenCalls {
    pub(super) fn enter(&self) -> OpenCall<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenCall(self)
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct OpenCall<'a>(&'a OpenCalls);

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls started per second; 0 is not limited.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: u32,
    bucket: Mutex<Option<(Boottime, Duration)>>,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        Self { per_second, bucket: Mutex::new(None) }
    }

    /// How many calls may start now, at most `wanted`; what is taken and not used is given back by [`Rate::give_back`].
    /// The bucket holds one second's worth, kept as the time that pays for it.
    pub(super) fn take(&self, wanted: usize, now: Boottime) -> usize {
        let Some(price) = self.price() else { return wanted };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, saved) = bucket.unwrap_or((now, Duration::from_secs(1)));
        let saved = (saved + now.saturating_since(since)).min(Duration::from_secs(1));
        let affordable = usize::try_from(saved.as_nanos() / price.as_nanos().max(1)).unwrap_or(usize::MAX);
        let taken = wanted.min(affordable);
        let paid = price * u32::try_from(taken).unwrap_or(u32::MAX);
        *bucket = Some((now, saved.saturating_sub(paid)));
        taken
    }

    pub(super) fn give_back(&self, unused: usize) {
        let Some(price) = self.price() else { return };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, saved)) = bucket.as_mut() {
            *saved = (*saved + price * u32::try_from(unused).unwrap_or(0)).min(Duration::from_secs(1));
        }
    }

    fn price(&self) -> Option<Duration> {
        (self.per_second > 0).then(|| Duration::from_secs(1) / self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_pays_out_one_second_and_then_as_time_goes() {
        let rate = Rate::new(10);
        let start = Boottime(Duration::from_secs(100));
        assert_eq!(rate.take(50, start), 10);
        assert_eq!(rate.take(50, start), 0);
        assert_eq!(rate.take(50, start.plus(Duration::from_millis(250))), 2);
        rate.give_back(2);
        assert_eq!(rate.take(50, start.plus(Duration::from_millis(250))), 2);
        assert_eq!(rate.take(50, start.plus(Duration::from_secs(60))), 10);
        assert_eq!(Rate::new(0).take(7, start), 7);
    }

    #[tokio::test]
    async fn slots_are_given_back_when_dropped() {
        let slots = Slots::new(4);
        let taken = slots.take(10, Duration::ZERO).await;
        assert_eq!((taken.len(), slots.free.available_permits()), (4, 0));
        drop(taken);
        assert_eq!(slots.free.available_permits(), 4);
        assert_eq!(slots.take(2, Duration::from_secs(1)).await.len(), 2);
    }
}
