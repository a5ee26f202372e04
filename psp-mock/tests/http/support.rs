//! A mock with a client, and answers that are easy to compare.

use psp_mock::{Config, Effect, Fault, Match, Mock, Payment};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use std::time::Duration;

pub(crate) struct Psp {
    pub(crate) mock: Mock,
    pub(crate) client: reqwest::Client,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Value,
}

impl Answer {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or("")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// `status type code param` of an error, `status status` of an object.
    pub(crate) fn brief(&self) -> String {
        let fields = ["/error/type", "/error/code", "/error/param", "/status"].map(|pointer| self.text(pointer));
        let shown: Vec<&str> = fields.into_iter().filter(|field| !field.is_empty()).collect();
        format!("{} {}", self.status, shown.join(" ")).trim_end().to_owned()
    }
}

pub(crate) fn client() -> reqwest::Client {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        // Another test was first.
    }
    reqwest::Client::builder().timeout(Duration::from_secs(20)).build().expect("client builds")
}

impl Psp {
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        Self { mock: Mock::start(config).await.expect("mock starts"), client: client() }
    }

    /// Adds `pi_NAME` with `ch_NAME`, paid.
    pub(crate) fn payment(&self, name: &str, amount: i64, currency: &str) {
        let (id, charge) = (Some(format!("pi_{name}")), Some(format!("ch_{name}")));
        let payment = Payment { id, charge, amount, currency: currency.to_owned(), account: None };
        self.mock.add_payments(vec![payment]).expect("payment is added");
    }

    pub(crate) fn fault(&self, matches: Match, effect: Effect) -> u64 {
        self.mock.add_fault(Fault::once(matches, effect)).expect("fault is taken")
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.mock.url())).bearer_auth("sk_test_default")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await.expect("is answered")
    }

    pub(crate) async fn post(&self, path: &str, form: &str, key: Option<&str>) -> Answer {
        self.try_post(path, form, key).await.expect("is answered")
    }

    pub(crate) async fn try_post(&self, path: &str, form: &str, key: Option<&str>) -> reqwest::Result<Answer> {
        let request = self.request(Method::POST, path).body(form.to_owned());
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        send(match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        })
        .await
    }

    /// Asks for 100 of the payment under a key and a reference, both called `name`.
    pub(crate) async fn refund(&self, payment: &str, name: &str) -> reqwest::Result<Answer> {
        let form = format!("payment_intent={payment}&amount=100&metadata[intent_id]={name}");
        self.try_post("/v1/refunds", &form, Some(name)).await
    }

    pub(crate) fn executed(&self, intent: &str) -> u32 {
        self.mock.counters(intent).map_or(0, |counters| counters.refunds_executed)
    }
}

pub(crate) async fn send(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await?;
    Ok(Answer { status, headers, json: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}
