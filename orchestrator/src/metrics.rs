//! Every metric of the orchestrator, declared here and nowhere else.
//!
//! The recorder is an argument, so that several nodes can live in one test process. Labels are closed sets: states, outcomes, provider names
//! from the configuration.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};
use std::sync::Arc;
use std::time::Duration;

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

enum Kind {
    Counter,
    Gauge,
    Histogram,
}

const DECLARED: &[(&str, Kind, Option<Unit>, &str)] = &[
    ("lock_acquire_total", Kind::Counter, None, "Claims of leases, by backend and result (held, taken, error)."),
    ("lock_wait_seconds", Kind::Histogram, Some(Unit::Seconds), "Time a claim request took."),
    ("lock_renew_fail_total", Kind::Counter, None, "Renewals of the session that failed or found it gone."),
    ("lock_hold_seconds", Kind::Histogram, Some(Unit::Seconds), "Time from claim to release of a hold."),
    ("fence_reject_total", Kind::Counter, None, "Writes that lost to a newer token, by kind of resource."),
    ("refunds", Kind::Gauge, None, "Refunds by state."),
    (
        "refund_oldest_seconds",
        Kind::Gauge,
        Some(Unit::Seconds),
        "Age of the oldest refund in a state that is not final.",
    ),
    ("refunds_left_alone", Kind::Gauge, None, "Refunds no worker touches, by reason."),
    ("psp_call_seconds", Kind::Histogram, Some(Unit::Seconds), "Duration of calls to a provider, by kind and outcome."),
    ("psp_in_flight", Kind::Gauge, None, "Calls open at a provider."),
    (
        "lease_takeover_seconds",
        Kind::Histogram,
        Some(Unit::Seconds),
        "Time from the end of a dead session to the successor's install.",
    ),
    ("hold_expired_total", Kind::Counter, None, "Steps stopped because they outlived the hold maximum."),
    ("refunds_parked_total", Kind::Counter, None, "Refunds that were parked for a person."),
    ("clock_difference_seconds", Kind::Gauge, Some(Unit::Seconds), "Database clock minus local clock."),
];

/// Handles to all metrics, bound to one recorder.
#[derive(Clone)]
pub struct Metrics {
    recorder: Arc<dyn Recorder + Send + Sync>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Describes every metric to the recorder.
    #[must_use]
    pub fn new(recorder: Arc<dyn Recorder + Send + Sync>) -> Self {
        for (name, kind, unit, help) in DECLARED {
            let (name, help) = (KeyName::from_const_str(name), SharedString::const_str(help));
            match kind {
                Kind::Counter => recorder.describe_counter(name, *unit, help),
                Kind::Gauge => recorder.describe_gauge(name, *unit, help),
                Kind::Histogram => recorder.describe_histogram(name, *unit, help),
            }
        }
        Self { recorder }
    }

    /// Metrics that go nowhere.
    #[must_use]
    pub fn discarded() -> Self {
        Self::new(Arc::new(metrics::NoopRecorder))
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.recorder.register_counter(&Key::from_parts(name, labels), &METADATA)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.recorder.register_gauge(&Key::from_parts(name, labels), &METADATA)
    }

    fn histogram(&self, name: &'static str, labels: Vec<Label>) -> Histogram {
        self.recorder.register_histogram(&Key::from_parts(name, labels), &METADATA)
    }

    pub fn lock_acquired(&self, backend: &'static str, result: &'static str, count: usize) {
        let labels = vec![Label::from_static_parts("backend", backend), Label::from_static_parts("result", result)];
        self.counter("lock_acquire_total", labels).increment(as_u64(count));
    }

    pub fn lock_waited(&self, wait: Duration) {
        self.histogram("lock_wait_seconds", vec![]).record(wait.as_secs_f64());
    }

    pub fn lock_renew_failed(&self) {
        self.counter("lock_renew_fail_total", vec![]).increment(1);
    }

    pub fn lock_held(&self, hold: Duration) {
        self.histogram("lock_hold_seconds", vec![]).record(hold.as_secs_f64());
    }

    pub fn fence_rejected(&self, resource_kind: &'static str, count: usize) {
        self.counter("fence_reject_total", vec![Label::from_static_parts("resource_kind", resource_kind)])
            .increment(as_u64(count));
    }

    pub fn hold_expired(&self) {
        self.counter("hold_expired_total", vec![]).increment(1);
    }

    pub fn refund_parked(&self) {
        self.counter("refunds_parked_total", vec![]).increment(1);
    }

    pub fn refunds(&self, state: &'static str, count: i64) {
        self.gauge("refunds", vec![Label::from_static_parts("state", state)]).set(as_f64(count));
    }

    pub fn refund_oldest(&self, state: &'static str, age: Duration) {
        self.gauge("refund_oldest_seconds", vec![Label::from_static_parts("state", state)]).set(age.as_secs_f64());
    }

    pub fn refunds_left_alone(&self, reason: &'static str, count: i64) {
        self.gauge("refunds_left_alone", vec![Label::from_static_parts("reason", reason)]).set(as_f64(count));
    }

    pub fn psp_called(&self, psp: &str, kind: &'static str, outcome: &'static str, duration: Duration) {
        let labels = vec![
            Label::new("psp", psp.to_owned()),
            Label::from_static_parts("kind", kind),
            Label::from_static_parts("outcome", outcome),
        ];
        self.histogram("psp_call_seconds", labels).record(duration.as_secs_f64());
    }

    pub fn psp_in_flight(&self, psp: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.gauge("psp_in_flight", vec![Label::new("psp", psp.to_owned())]).set(as_f64(count));
    }

    pub fn lease_taken_over(&self, after: Duration) {
        self.histogram("lease_takeover_seconds", vec![]).record(after.as_secs_f64());
    }

    #[expect(clippy::float_arithmetic, reason = "a gauge in seconds, as its name says")]
    pub fn clock_difference_ms(&self, difference_ms: i64) {
        self.gauge("clock_difference_seconds", vec![]).set(as_f64(difference_ms) / 1_000.0);
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a gauge shows magnitudes; exact counts are in the API")]
fn as_f64(count: i64) -> f64 {
    count as f64
}
