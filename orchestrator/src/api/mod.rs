//! The HTTP surface: submit refunds, read them, and ask for things to happen.
//!
//! Handlers decide nothing about a refund. They insert placeholders, append to inboxes and read; the worker does the rest, so
//! a server that holds no lease serves everything here. A 2xx on submit means that the placeholder is on disk. Across a crash: a request
//! without an answer may have taken effect, and repeating it with the same `intent_id` tells.
//!
//! Left out until access tokens exist: who the caller is. The server therefore listens on loopback only.

pub mod amount;
pub mod body;
pub mod health;
pub mod ledger;
pub mod middleware;
pub mod payment_facts;
pub mod payments;
pub mod problem;
pub mod psps;
pub mod refund_actions;
pub mod refunds;
pub mod story;
pub mod submit;
pub mod submit_queue;
pub mod views;

use crate::clock::Clock;
use crate::psp::Provider;
use crate::store::Store;
use crate::work::wake::Wake;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use jobs::refund::capabilities::Capabilities;
use payment_facts::PaymentFactsCache;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use submit_queue::SubmitQueue;
use uuid::Uuid;

/// A refund is a few hundred bytes.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// A thousand payments.
pub const PAYMENTS_BODY_BYTES_MAX: usize = 1 << 20;

/// Who is on record for what a caller asks, until callers show access tokens.
pub const LOCAL_ACTOR: &str = "local";

/// One configured provider, as submits and stories need it.
#[derive(Debug, Clone)]
pub struct ApiProvider {
    pub provider: Arc<dyn Provider>,
    pub account: String,
    pub kind: &'static str,
    pub capabilities: Capabilities,
}

/// What handlers share.
#[derive(Clone)]
pub struct ApiState {
    pub store: Arc<dyn Store>,
    /// By name.
    pub providers: Arc<BTreeMap<String, ApiProvider>>,
    pub environment: String,
    pub clock: Arc<dyn Clock>,
    /// Source of random ids.
    pub new_id: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// Why this replica takes no work, one sentence each; empty when it does.
    pub readiness: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    pub render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub submit_queue: SubmitQueue,
    pub payment_facts: Arc<PaymentFactsCache>,
    /// Nudges the worker: something new is due.
    pub wake: Wake,
    pub request_timeout: Duration,
}

impl std::fmt::Debug for ApiState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiState")
            .field("environment", &self.environment)
            .field("providers", &self.providers)
            .finish_non_exhaustive()
    }
}

impl ApiState {
    /// The provider, if this server is configured for that account of it.
    #[must_use]
    pub fn provider(&self, psp: &str, account: &str) -> Option<&ApiProvider> {
        self.providers.get(psp).filter(|provider| provider.account == account)
    }
}

/// All routes.
pub fn router(state: ApiState) -> Router {
    let payments = Router::new()
        .route("/v1/payments", post(payments::import))
        .layer(DefaultBodyLimit::max(PAYMENTS_BODY_BYTES_MAX));
    let rest = Router::new()
        .route("/v1/refunds", post(submit::submit).get(refunds::list))
        .route("/v1/refunds/{id}", get(refunds::show))
        .route("/v1/refunds/{id}/replay", post(refund_actions::replay))
        .route("/v1/refunds/{id}/cancel", post(refund_actions::cancel))
        .route("/v1/payments/{id}", get(payments::show))
        .route("/v1/ledger/balances", get(ledger::balances))
        .route("/v1/psps", get(psps::list))
        .route("/v1/psps/{psp}/pause", post(psps::pause))
        .route("/v1/psps/{psp}/resume", post(psps::resume))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
    payments
        .merge(rest)
        .fallback(middleware::unknown_path)
        .method_not_allowed_fallback(middleware::unknown_method)
        .layer(axum::middleware::from_fn_with_state(state.clone(), middleware::frame))
        .with_state(state)
}
