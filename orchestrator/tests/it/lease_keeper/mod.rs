//! The session keeper under paused time: what it does when the service is silent, forgets, fails or answers late.
//!
//! The service is the one in memory behind a script at its edge; clock and timers stand still until every task waits.

mod holds;
mod script;
mod sessions;

use orchestrator::clock::Clock;
use orchestrator::lease::keeper::{SessionIds, SessionKeeper};
use orchestrator::lease::{HeldLease, LeaseParameters, Leases, MemoryLeases, ResourceKey, Session};
use orchestrator::metrics::Metrics;
use rand::SeedableRng;
use rand::rngs::StdRng;
use script::{PausedClock, ScriptedLeases};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A replica: a running keeper and the service it talks to. TTL 10 s, margin 2 s, renewals every 3 s, requests 2 s, holds 75 s.
struct Replica {
    clock: Arc<PausedClock>,
    service: Arc<ScriptedLeases>,
    keeper: Arc<SessionKeeper>,
    shutdown: watch::Sender<bool>,
    running: JoinHandle<()>,
    metrics: metrics_exporter_prometheus::PrometheusHandle,
}

impl Replica {
    fn start() -> Self {
        let clock = Arc::new(PausedClock::new());
        let memory = MemoryLeases::new(Arc::clone(&clock) as Arc<dyn Clock>);
        Self::start_on(Arc::new(ScriptedLeases::new(memory)), clock)
    }

    fn start_on(service: Arc<ScriptedLeases>, clock: Arc<PausedClock>) -> Self {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let metrics = recorder.handle();
        let keeper = Arc::new(SessionKeeper::new(
            Arc::clone(&service) as Arc<dyn Leases>,
            Arc::clone(&clock) as Arc<dyn Clock>,
            LeaseParameters::default().validate().unwrap(),
            "test".to_owned(),
            Metrics::new(Arc::new(recorder)),
            SessionIds::new(StdRng::seed_from_u64(1)),
        ));
        let (shutdown, stop) = watch::channel(false);
        let running = tokio::spawn({
            let keeper = Arc::clone(&keeper);
            async move { keeper.run(stop).await }
        });
        Self { clock, service, keeper, shutdown, running, metrics }
    }

    async fn session(&self) -> Arc<Session> {
        self.keeper.changed(None).await.unwrap()
    }

    /// The value of a counter, or of a histogram's count.
    fn metric(&self, line: &str) -> u64 {
        let rendered = self.metrics.render();
        let value = rendered.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().unwrap())
    }
}

fn keys(names: &[&str]) -> Vec<ResourceKey> {
    names.iter().map(|name| ResourceKey(format!("intent/{name}"))).collect()
}

/// Claims keys that must be free.
async fn claim(session: &Arc<Session>, names: &[&str]) -> Vec<HeldLease> {
    session.claim(&keys(names)).await.unwrap().into_iter().map(Option::unwrap).collect()
}

async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await;
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
