//! Metrics of one node, and the log of the process.

use crate::config::{Log, LogFormat};
use crate::metrics::Metrics;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::sync::Arc;

/// From a millisecond to beyond the longest call.
const SECONDS_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 45.0, 90.0];

/// A recorder of its own, so that several nodes can live in one process.
#[derive(Clone)]
pub struct Telemetry {
    metrics: Metrics,
    handle: PrometheusHandle,
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Telemetry")
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::new()
    }
}

impl Telemetry {
    #[must_use]
    pub fn new() -> Self {
        let builder = PrometheusBuilder::new();
        // Refused only for an empty list.
        let builder = builder.set_buckets(&SECONDS_BUCKETS).unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        Self { metrics: Metrics::new(Arc::new(recorder)), handle }
    }

    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Prometheus text.
    #[must_use]
    pub fn render(&self) -> String {
        self.handle.render()
    }
}

/// Sends the log to stderr; once in a process. stdout is for data.
pub fn log_to_stderr(log: &Log) {
    let filter = tracing_subscriber::EnvFilter::try_new(&log.filter).unwrap_or_default();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let Err(error) = started {
        tracing::warn!(%error, "the log was set up before");
    }
}
