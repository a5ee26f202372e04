//! One intent in hand: its lease, its provider's slot while a step is open, and how many steps it took.

use super::Link;
use super::slots::Slot;
use crate::lease::HeldLease;
use jobs::ids::IntentId;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// An intent this worker holds, from claim to release.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) intent_id: IntentId,
    pub(super) lease: HeldLease,
    pub(super) link: Arc<Link>,
    pub(super) steps: u8,
    /// Taken before a step is installed, given back when its call has ended.
    pub(super) slot: Option<Slot>,
    /// Bounds how many intents are in hand, those waiting for a slot included.
    pub(super) _room: Slot,
    pub(super) _in_hand: InHand,
}

/// Counts what is in hand, so that a shutdown knows when nothing is.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    count: AtomicUsize,
    changed: Notify,
}

impl Tracker {
    pub(super) fn take(self: Arc<Self>) -> InHand {
        self.count.fetch_add(1, Ordering::SeqCst);
        InHand(self)
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.count() == 0 {
                return;
            }
            changed.await;
        }
    }
}

/// Dropped when the hold is released or given up.
#[derive(Debug)]
pub(super) struct InHand(Arc<Tracker>);

impl Drop for InHand {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}
