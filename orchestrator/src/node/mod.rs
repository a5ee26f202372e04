//! One replica: what it is built from, and its loops, each in the replica's own JoinSet.
//!
//! A node is one future. Dropping it stops everything it does, as a crash would; nothing of it is kept outside the store and the lease service.
//! Shutdown: stop claiming, let calls and requests end within the drain limit, release, close the session.

mod open;
mod readiness;
mod telemetry;

pub use open::{OpenError, OpenedDatabase, lease_parameters, open_database, open_parts, open_provider};
pub use readiness::Readiness;
pub use telemetry::{Telemetry, log_to_stderr};

use crate::api::payment_facts::PaymentFactsCache;
use crate::api::submit_queue::{SubmitLoop, submit_queue};
use crate::api::{ApiProvider, ApiState, router};
use crate::clock::Clock;
use crate::lease::keeper::{KeeperStatus, SessionIds};
use crate::lease::{LeaseParameters, Leases, SessionKeeper};
use crate::randomness::Randomness;
use crate::store::Store;
use crate::work::conditions::Conditions;
use crate::work::wake::Wake;
use crate::work::{PspLink, Worker, WorkerOptions, WorkerParts};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long the last writes and the session's end may take after the drain limit.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// What a node is made of; each part works before the node runs.
pub struct NodeParts {
    pub environment: String,
    pub store: Arc<dyn Store>,
    /// By name.
    pub providers: BTreeMap<String, ApiProvider>,
    pub clock: Arc<dyn Clock>,
    pub leases: Arc<dyn Leases>,
    pub lease_parameters: LeaseParameters,
    /// Host name and process id, for people.
    pub label: String,
    /// Source of all random identities.
    pub randomness: Arc<Randomness>,
    pub session_ids: SessionIds,
    pub telemetry: Telemetry,
    pub request_timeout: Duration,
    /// Its drain limit also bounds open requests at shutdown.
    pub worker: WorkerOptions,
}

/// A replica, ready to run.
pub struct Node {
    api: ApiState,
    submit_loop: SubmitLoop,
    readiness: Arc<Readiness>,
    keeper: Arc<SessionKeeper>,
    worker: Worker,
    drain: Duration,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("api", &self.api).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for NodeParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeParts").field("environment", &self.environment).finish_non_exhaustive()
    }
}

impl Node {
    #[must_use]
    pub fn new(parts: NodeParts) -> Self {
        let (submit_queue, submit_loop) = submit_queue(parts.store.clone());
        let metrics = parts.telemetry.metrics();
        let wake = Wake::default();
        let keeper = Arc::new(SessionKeeper::new(
            parts.leases,
            parts.clock.clone(),
            parts.lease_parameters,
            parts.label,
            metrics.clone(),
            parts.session_ids,
        ));
        let worker = Worker::new(WorkerParts {
            store: parts.store.clone(),
            keeper: keeper.clone(),
            links: parts.providers.iter().map(|(name, provider)| link(name, provider)).collect(),
            clock: parts.clock.clone(),
            randomness: parts.randomness.clone(),
            metrics,
            wake: wake.clone(),
            options: parts.worker,
        });
        let readiness = Arc::new(Readiness::default());
        let (telemetry, randomness) = (parts.telemetry, parts.randomness);
        let api = ApiState {
            store: parts.store,
            providers: Arc::new(parts.providers),
            environment: parts.environment,
            clock: parts.clock,
            new_id: Arc::new(move || randomness.uuid()),
            readiness: reasons(readiness.clone(), keeper.clone(), worker.conditions()),
            render_metrics: Arc::new(move || telemetry.render()),
            submit_queue,
            payment_facts: Arc::new(PaymentFactsCache::default()),
            wake,
            request_timeout: parts.request_timeout,
        };
        Self { api, submit_loop, readiness, keeper, worker, drain: parts.worker.drain }
    }

    /// What the API shares with whoever else runs in this node.
    #[must_use]
    pub fn api(&self) -> &ApiState {
        &self.api
    }

    /// Where loops say why this replica takes no work.
    #[must_use]
    pub fn readiness(&self) -> Arc<Readiness> {
        self.readiness.clone()
    }

    /// Serves and works until told to stop, then ends in order: open calls and requests first, the session last.
    /// An error means that a loop ended on its own.
    pub async fn run(self, listener: TcpListener, stop: impl Future<Output = ()>) -> std::io::Result<()> {
        let (stopping, stopped) = watch::channel(false);
        let (closing, closed) = watch::channel(false);
        let (submit_loop, keeper, worker) = (self.submit_loop, self.keeper, self.worker);
        let mut session = JoinSet::new();
        session.spawn(async move { keeper.run(closed).await });
        let mut loops: JoinSet<std::io::Result<()>> = JoinSet::new();
        loops.spawn(async move {
            submit_loop.run().await;
            Ok(())
        });
        let worker_stopped = stopped.clone();
        loops.spawn(async move {
            worker.run(worker_stopped).await;
            Ok(())
        });
        let app = router(self.api);
        loops.spawn(async move { axum::serve(listener, app).with_graceful_shutdown(told(stopped)).await });
        let ended = tokio::select! {
            biased;
            () = stop => None,
            ended = loops.join_next() => ended,
            _ = session.join_next() => return Err(std::io::Error::other("the session keeper ended on its own")),
        };
        if let Some(ended) = ended {
            return ended
                .map_err(std::io::Error::other)?
                .and(Err(std::io::Error::other("a loop of this replica ended on its own")));
        }
        stopping.send_replace(true);
        let drained = async { while loops.join_next().await.is_some() {} };
        if tokio::time::timeout(self.drain + CLOSE_WITHIN, drained).await.is_err() {
            tracing::warn!("requests were still open at the drain limit and are cut off");
        }
        closing.send_replace(true);
        let closed = async { while session.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSE_WITHIN, closed).await.is_err() {
            tracing::warn!("the lease service did not take the session's end; it expires by itself");
        }
        Ok(())
    }
}

fn link(name: &str, provider: &ApiProvider) -> PspLink {
    PspLink {
        psp: name.to_owned(),
        account: provider.account.clone(),
        provider: provider.provider.clone(),
        capabilities: provider.capabilities.clone(),
    }
}

type Reasons = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Why this replica takes no work: what its loops noticed, its session, the clocks.
fn reasons(readiness: Arc<Readiness>, keeper: Arc<SessionKeeper>, conditions: Arc<Conditions>) -> Reasons {
    Arc::new(move || {
        let mut reasons = readiness.reasons();
        if let KeeperStatus::NotReady(reason) = keeper.status() {
            reasons.push(format!("no lease session: {reason}"));
        }
        reasons.extend(conditions.clock_trouble());
        reasons
    })
}

/// Waits until the node stops.
async fn told(mut stopped: watch::Receiver<bool>) {
    // A dropped sender means the same: the node is gone.
    drop(stopped.wait_for(|stop| *stop).await);
}
