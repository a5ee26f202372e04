//! A server on a free port with a store in memory, a PSP that only encodes, and a holder that tests move by hand.

use async_trait::async_trait;
use chrono::TimeDelta;
use jobs::ids::{AttemptId, IntentId, SessionId, Token};
use jobs::refund::capabilities::Capabilities;
use jobs::refund::intent::{AttemptKind, Intent, NextAction};
use jobs::refund::outcome::Outcome;
use jobs::refund::state::State;
use orchestrator::api::submit_queue::submit_queue;
use orchestrator::api::{ApiProvider, ApiState, router};
use orchestrator::clock::{Clock, SystemClock};
use orchestrator::node::{Readiness, Telemetry};
use orchestrator::psp::{CreateBody, CreateCall, EncodeError, LookupCall, Provider};
use orchestrator::store::Store;
use orchestrator::store::change::{
    Change, FenceGuard, InboxApplied, NewAttempt, NewOutcome, TransferKind, WriteResult,
};
use orchestrator::store::memory::MemoryStore;
use orchestrator::work::wake::Wake;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use uuid::Uuid;

/// The amount this PSP can not be sent.
pub(crate) const UNSENDABLE_MINOR: i64 = 666;

#[derive(Debug)]
struct EncodeOnly;

#[async_trait]
impl Provider for EncodeOnly {
    fn encode_create(&self, body: &CreateBody<'_>) -> Result<Vec<u8>, EncodeError> {
        if body.amount.minor == UNSENDABLE_MINOR {
            return Err(EncodeError("this PSP takes no such amount".to_owned()));
        }
        Ok(format!("amount={}", body.amount.minor).into_bytes())
    }

    async fn create(&self, _: CreateCall<'_>) -> Outcome {
        Outcome::Unknown { reason: "not called here".to_owned() }
    }

    async fn lookup(&self, _: LookupCall<'_>) -> Outcome {
        Outcome::Unknown { reason: "not called here".to_owned() }
    }
}

/// A running server.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) wake: Wake,
    http: reqwest::Client,
    _running: JoinSet<()>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) headers: reqwest::header::HeaderMap,
}

impl Reply {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Self::start_on(Arc::new(MemoryStore::new(clock))).await
    }

    pub(crate) async fn start_on(store: Arc<dyn Store>) -> Self {
        orchestrator::psp::install_tls_provider();
        let provider = ApiProvider {
            provider: Arc::new(EncodeOnly),
            account: "acct_1".to_owned(),
            kind: "stripe",
            capabilities: Capabilities::stripe(),
        };
        let (submit_queue, submit_loop) = submit_queue(store.clone());
        let (readiness, wake) = (Arc::new(Readiness::default()), Wake::default());
        let (reasons, telemetry) = (readiness.clone(), Telemetry::new());
        telemetry.metrics().fence_rejected("intent", 1);
        let state = ApiState {
            store: store.clone(),
            providers: Arc::new(BTreeMap::from([("acme".to_owned(), provider)])),
            environment: "test".to_owned(),
            clock: Arc::new(SystemClock),
            new_id: Arc::new(Uuid::new_v4),
            readiness: Arc::new(move || reasons.reasons()),
            render_metrics: Arc::new(move || telemetry.render()),
            submit_queue,
            payment_facts: Arc::default(),
            wake: wake.clone(),
            request_timeout: Duration::from_secs(20),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut running = JoinSet::new();
        running.spawn(submit_loop.run());
        running.spawn(async move { axum::serve(listener, router(state)).await.unwrap() });
        Self { url, store, readiness, wake, http: reqwest::Client::new(), _running: running }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Reply {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        Reply { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()) }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.http.get(format!("{}{path}", self.url))).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_with(path, body, &[]).await
    }

    pub(crate) async fn post_with(&self, path: &str, body: Value, headers: &[(&str, &str)]) -> Reply {
        self.post_raw(path, body.to_string(), headers).await
    }

    pub(crate) async fn post_raw(&self, path: &str, body: String, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.http.post(format!("{}{path}", self.url)).body(body);
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        self.send(request).await
    }

    /// A payment on record, named `p-1` or so, whose PSP id is `pi_p-1`.
    pub(crate) async fn payment(&self, id: &str, captured_minor: i64, currency: &str) {
        let body = json!({
            "payment_id": id, "psp": "acme", "psp_payment_ref": format!("pi_{id}"), "currency": currency,
            "amount_minor": captured_minor.to_string(),
        });
        let reply = self.post("/v1/payments", body).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }

    pub(crate) async fn refund(&self, intent_id: &str, payment_id: &str, minor: i64, currency: &str) -> Reply {
        let body =
            json!({ "intent_id": intent_id, "payment_id": payment_id, "amount_minor": minor, "currency": currency });
        self.post("/v1/refunds", body).await
    }

    /// A refund brought to this state.
    pub(crate) async fn refund_in(&self, intent_id: &str, state: State) {
        self.payment(&format!("p-{intent_id}"), 10_000, "EUR").await;
        assert_eq!(self.refund(intent_id, &format!("p-{intent_id}"), 1_000, "EUR").await.status, 202);
        Holder::new(&*self.store).bring(intent_id, state).await;
    }
}

/// Moves intents as a worker would.
pub(crate) struct Holder<'a> {
    store: &'a dyn Store,
}

impl<'a> Holder<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self { store }
    }

    async fn intent(&self, id: &str) -> Intent {
        let loaded = self.store.load(&[IntentId::new(id).unwrap()]).await.unwrap();
        loaded.files[0].intent.clone()
    }

    fn change(intent: &Intent, state: State) -> Change {
        let resting = state.is_final() || state == State::NeedsReview;
        Change {
            intent_id: intent.intent_id.clone(),
            expected_version: intent.version,
            token: Token { epoch: 1, counter: intent.fence.counter + 1 },
            fence_guard: FenceGuard::Below,
            expected_open_attempt: intent.open_attempt,
            state,
            state_reason: (state == State::NeedsReview).then(|| "the PSP shows two refunds".to_owned()),
            psp_refund_ref: matches!(state, State::Succeeded | State::Processing)
                .then(|| format!("re_{}", intent.intent_id)),
            holder_session: None,
            open_attempt: None,
            next_action: if resting { NextAction::None } else { NextAction::Lookup },
            next_action_at: (!resting).then(|| intent.created_at + TimeDelta::hours(1)),
            rung: 0,
            attempt: None,
            outcomes: Vec::new(),
            transfer: None,
            breaks: Vec::new(),
            inbox_applied: Vec::new(),
        }
    }

    async fn write(&self, change: Change) {
        assert_eq!(self.store.apply(&[change]).await.unwrap(), [WriteResult::Written]);
    }

    /// A create is sent and answered so that the refund ends up in this state.
    pub(crate) async fn bring(&self, id: &str, state: State) {
        let intent = self.intent(id).await;
        if state == State::Recorded {
            return;
        }
        let attempt_id = AttemptId(Uuid::new_v4());
        let started_at = self.store.now().await.unwrap();
        let attempt = NewAttempt {
            attempt_id,
            kind: AttemptKind::Create,
            started_at,
            deadline: started_at + TimeDelta::seconds(60),
            key_expires_at: Some(started_at + TimeDelta::hours(24)),
            absent_until: Some(started_at + TimeDelta::minutes(6)),
            grounds: None,
        };
        let install = Change {
            holder_session: Some(SessionId(Uuid::new_v4())),
            open_attempt: Some(attempt_id),
            attempt: Some(attempt),
            ..Self::change(&intent, State::Sending)
        };
        self.write(install).await;
        if state == State::Sending {
            return;
        }
        let intent = self.intent(id).await;
        let outcome = Outcome::Unknown { reason: "told by a test".to_owned() };
        let change = Change {
            token: intent.fence,
            fence_guard: FenceGuard::Equal,
            outcomes: vec![NewOutcome { attempt_id, outcome, duration_ms: 12, late: false }],
            transfer: (state == State::Succeeded).then_some(TransferKind::Post),
            ..Self::change(&intent, state)
        };
        self.write(change).await;
    }

    /// Reads the oldest unread message and moves the intent, or refuses.
    pub(crate) async fn read_inbox(&self, id: &str, state: State, refused_because: Option<&str>) {
        let loaded = self.store.load(&[IntentId::new(id).unwrap()]).await.unwrap();
        let file = &loaded.files[0];
        let applied =
            InboxApplied { inbox_id: file.unread[0].inbox_id, refused_because: refused_because.map(str::to_owned) };
        self.write(Change { inbox_applied: vec![applied], ..Self::change(&file.intent, state) }).await;
    }
}

/// What a payment can still refund.
pub(crate) async fn refundable(server: &Server, payment: &str) -> String {
    server.get(&format!("/v1/payments/{payment}")).await.text("refundable_minor").to_owned()
}
