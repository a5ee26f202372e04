//! The worker: carries out the plans of `jobs` for every intent that is due, in bulk.
//!
//! One hold goes: due, claim, load, plan, install (step 2), call (step 3), commit (step 4), release. Each arrow is a queue and each loop
//! works in batches, so that one commit serves hundreds of refunds:
//!
//! ```text
//! intake -> advance (both one per provider) -> call -> commit -> release
//!              ^                                         |
//!              +------------- further step --------------+   evidence: answers that could not be written go to the inbox
//! ```
//!
//! A step takes its provider's concurrency slot before it installs and keeps it until its call has ended. What is in hand is bounded
//! by room, somewhat more than the slots, so that the next are claimed while slots are in use and the answered are written:
//! it bounds queues, tasks and memory. Across a crash nothing here matters: the rows say what was started, and the next holder looks up.
//! Left out: what to do next is never decided here, but in `jobs::refund::plan` and `settle`.

mod advance;
mod call;
mod commit;
pub mod conditions;
mod evidence;
mod gauges;
mod hold;
mod intake;
mod poison;
mod read;
mod release;
mod slots;
pub mod wake;
mod write;

use crate::clock::Clock;
use crate::lease::keeper::SessionKeeper;
use crate::metrics::Metrics;
use crate::psp::Provider;
use crate::randomness::Randomness;
use crate::store::Store;
use conditions::Conditions;
use hold::{InHand, Tracker};
use jobs::refund::capabilities::Capabilities;
use poison::Poison;
use slots::{OpenCalls, Rate, Slots};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use wake::Wake;

/// A provider as the worker drives it.
#[derive(Debug, Clone)]
pub struct PspLink {
    pub psp: String,
    pub account: String,
    pub provider: Arc<dyn Provider>,
    pub capabilities: Capabilities,
}

/// Sizes and times of the loops; none of them decides what happens to a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Most intents in one claim, install or commit.
    pub batch: usize,
    /// Longest wait before looking for due intents again.
    pub poll: Duration,
    /// How long a batch waits to grow while many calls are open.
    pub linger: Duration,
    /// How long open calls may go on after a shutdown was asked for.
    pub drain: Duration,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            batch: 500,
            poll: Duration::from_millis(250),
            linger: Duration::from_millis(5),
            drain: Duration::from_secs(75),
        }
    }
}

/// Most steps one hold takes before it lets others have a turn.
const STEPS_PER_HOLD_MAX: u8 = 3;

/// What the worker is built from.
#[derive(Debug, Clone)]
pub struct WorkerParts {
    pub store: Arc<dyn Store>,
    pub keeper: Arc<SessionKeeper>,
    pub links: Vec<PspLink>,
    pub clock: Arc<dyn Clock>,
    pub randomness: Arc<Randomness>,
    pub metrics: Metrics,
    /// Nudged after a submit, a cancel or a replay.
    pub wake: Wake,
    pub options: WorkerOptions,
}

/// One provider with its slots and rate.
#[derive(Debug)]
struct Link {
    psp: String,
    account: String,
    provider: Arc<dyn Provider>,
    capabilities: Capabilities,
    slots: Slots,
    /// Intents in hand, with and without a slot.
    room: Slots,
    open_calls: OpenCalls,
    to_install: mpsc::Sender<hold::Held>,
    rate: Rate,
}

/// What all loops share.
#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    keeper: Arc<SessionKeeper>,
    clock: Arc<dyn Clock>,
    randomness: Arc<Randomness>,
    metrics: Metrics,
    wake: Wake,
    options: WorkerOptions,
    conditions: Arc<Conditions>,
    poison: Poison,
    tracker: Arc<Tracker>,
    to_call: mpsc::Sender<call::InCall>,
    to_commit: mpsc::Sender<commit::Answered>,
    to_evidence: mpsc::Sender<evidence::Evidence>,
    to_release: mpsc::Sender<hold::Held>,
}

/// The worker of one node. Dropping its future stops every loop.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    links: Vec<Arc<Link>>,
    queues: Queues,
}

#[derive(Debug)]
struct Queues {
    /// By the order of the links.
    install: Vec<mpsc::Receiver<hold::Held>>,
    call: mpsc::Receiver<call::InCall>,
    commit: mpsc::Receiver<commit::Answered>,
    evidence: mpsc::Receiver<evidence::Evidence>,
    release: mpsc::Receiver<hold::Held>,
}

impl Worker {
    #[must_use]
    pub fn new(parts: WorkerParts) -> Self {
        let mut links = Vec::with_capacity(parts.links.len());
        let mut install = Vec::with_capacity(parts.links.len());
        // Everything in hand has room, so a queue this long is never full.
        let mut bound = 1;
        for link in parts.links {
            let room = room_for(link.capabilities.concurrency, parts.options.batch);
            let (to_install, installs) = mpsc::channel(room);
            bound += room;
            links.push(Arc::new(Link::new(link, room, to_install)));
            install.push(installs);
        }
        let (to_call, call) = mpsc::channel(bound);
        let (to_commit, commit) = mpsc::channel(bound);
        let (to_evidence, evidence) = mpsc::channel(bound);
        let (to_release, release) = mpsc::channel(bound);
        let shared = Arc::new(Shared {
            store: parts.store,
            keeper: parts.keeper,
            conditions: Arc::new(Conditions::new(parts.clock.clone())),
            clock: parts.clock,
            randomness: parts.randomness,
            metrics: parts.metrics,
            wake: parts.wake,
            options: parts.options,
            poison: Poison::default(),
            tracker: Arc::new(Tracker::default()),
            to_call,
            to_commit,
            to_evidence,
            to_release,
        });
        Self { shared, links, queues: Queues { install, call, commit, evidence, release } }
    }

    /// What stops creates at this moment, for readiness.
    #[must_use]
    pub fn conditions(&self) -> Arc<Conditions> {
        self.shared.conditions.clone()
    }

    /// Works until told to stop, then lets open calls end, writes what they brought, releases, and returns. Holds still open
    /// after the drain limit are dropped: their rows say what was started.
    pub async fn run(self, mut shutdown: watch::Receiver<bool>) {
        let Self { shared, links, queues } = self;
        let mut intakes = JoinSet::new();
        for link in &links {
            intakes.spawn(intake::run(shared.clone(), link.clone()));
        }
        let mut loops = JoinSet::new();
        for (link, queue) in links.iter().zip(queues.install) {
            loops.spawn(advance::run(shared.clone(), link.clone(), queue));
        }
        loops.spawn(call::run(shared.clone(), queues.call));
        loops.spawn(commit::run(shared.clone(), queues.commit));
        loops.spawn(evidence::run(shared.clone(), queues.evidence));
        loops.spawn(release::run(shared.clone(), queues.release));
        loops.spawn(gauges::run(shared.clone(), links));

        tokio::select! {
            biased;
            _ = shutdown.wait_for(|asked| *asked) => {}
            Some(ended) = loops.join_next() => tracing::error!(?ended, "a loop of the worker ended: this node must be restarted"),
            Some(ended) = intakes.join_next() => tracing::error!(?ended, "an intake ended: this node must be restarted"),
        }
        shared.conditions.stop_intake();
        while intakes.join_next().await.is_some() {}
        if tokio::time::timeout(shared.options.drain, shared.tracker.idle()).await.is_err() {
            tracing::warn!(
                in_hand = shared.tracker.count(),
                "drain limit reached: the successor looks these refunds up"
            );
        }
        loops.shutdown().await;
    }
}

/// Half as many again as there are slots: enough to claim and write while all slots are in use, not so many that other replicas starve.
fn room_for(concurrency: usize, batch: usize) -> usize {
    concurrency + (concurrency / 2 + 1).min(batch)
}

impl Link {
    fn new(link: PspLink, room: usize, to_install: mpsc::Sender<hold::Held>) -> Self {
        Self {
            slots: Slots::new(link.capabilities.concurrency),
            room: Slots::new(room),
            open_calls: OpenCalls::default(),
            to_install,
            rate: Rate::new(link.capabilities.creates_per_second),
            psp: link.psp,
            account: link.account,
            provider: link.provider,
            capabilities: link.capabilities,
        }
    }
}

impl Shared {
    fn in_hand(&self) -> InHand {
        self.tracker.clone().take()
    }

    /// What waits in a queue, at most a batch; nothing once the queue is closed. While many calls are open a small batch lingers, since
    /// a moment's wait saves transactions.
    async fn next_batch<T>(&self, queue: &mut mpsc::Receiver<T>) -> Option<Vec<T>> {
        let WorkerOptions { batch: most, linger, .. } = self.options;
        let mut batch = Vec::new();
        if queue.recv_many(&mut batch, most).await == 0 {
            return None;
        }
        if batch.len() < most / 4 && self.tracker.count() > most / 4 {
            tokio::time::sleep(linger).await;
            while batch.len() < most
                && let Ok(more) = queue.try_recv()
            {
                batch.push(more);
            }
        }
        Some(batch)
    }
}
