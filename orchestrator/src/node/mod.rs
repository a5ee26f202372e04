//! One replica: what it is built from, and its loops, each in the replica's own JoinSet.
//!
//! A node is one future. Dropping it stops everything it does, as a crash would; nothing of it is kept outside the store and the lease service.
//! Shutdown: stop claiming, let calls and requests end within the drain limit, release, close the session.

mod open;
mod readiness;
mod telemetry;

pub use open::{OpenError, open_parts, open_provider, open_store};
pub use readiness::Readiness;
pub use telemetry::{Telemetry, log_to_stderr};

use crate::api::payment_facts::PaymentFactsCache;
use crate::api::submit_queue::{SubmitLoop, submit_queue};
use crate::api::{ApiProvider, ApiState, router};
use crate::clock::Clock;
use crate::store::Store;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

/// What a node is made of; each part works before the node runs.
pub struct NodeParts {
    pub environment: String,
    pub store: Arc<dyn Store>,
    /// By name.
    pub providers: BTreeMap<String, ApiProvider>,
    pub clock: Arc<dyn Clock>,
    /// Source of random ids.
    pub new_id: Arc<dyn Fn() -> Uuid + Send + Sync>,
    pub telemetry: Telemetry,
    pub request_timeout: Duration,
    /// Longest wait for open calls and requests at shutdown.
    pub drain: Duration,
}

/// A replica, ready to run.
pub struct Node {
    api: ApiState,
    submit_loop: SubmitLoop,
    readiness: Arc<Readiness>,
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
        let readiness = Arc::new(Readiness::default());
        let reasons = readiness.clone();
        let telemetry = parts.telemetry;
        let api = ApiState {
            store: parts.store,
            providers: Arc::new(parts.providers),
            environment: parts.environment,
            clock: parts.clock,
            new_id: parts.new_id,
            readiness: Arc::new(move || reasons.reasons()),
            render_metrics: Arc::new(move || telemetry.render()),
            submit_queue,
            payment_facts: Arc::new(PaymentFactsCache::default()),
            wake: Arc::new(Notify::new()),
            request_timeout: parts.request_timeout,
        };
        Self { api, submit_loop, readiness, drain: parts.drain }
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

    /// Serves until told to stop, then ends in order. An error means that a loop ended on its own.
    pub async fn run(self, listener: TcpListener, stop: impl Future<Output = ()>) -> std::io::Result<()> {
        let (stopping, stopped) = watch::channel(false);
        let mut loops: JoinSet<std::io::Result<()>> = JoinSet::new();
        let submit_loop = self.submit_loop;
        loops.spawn(async move {
            submit_loop.run().await;
            Ok(())
        });
        let app = router(self.api);
        loops.spawn(async move { axum::serve(listener, app).with_graceful_shutdown(told(stopped)).await });
        let ended = tokio::select! {
            biased;
            () = stop => None,
            ended = loops.join_next() => ended,
        };
        if let Some(ended) = ended {
            return ended
                .map_err(std::io::Error::other)?
                .and(Err(std::io::Error::other("a loop of this replica ended on its own")));
        }
        stopping.send_replace(true);
        let drained = async { while loops.join_next().await.is_some() {} };
        if tokio::time::timeout(self.drain, drained).await.is_err() {
            tracing::warn!("requests were still open at the drain limit and are cut off");
        }
        Ok(())
    }
}

/// Waits until the node stops.
async fn told(mut stopped: watch::Receiver<bool>) {
    // A dropped sender means the same: the node is gone.
    drop(stopped.wait_for(|stop| *stop).await);
}
