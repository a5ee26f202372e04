//! Paths, health, metrics, request ids, and a database that does not answer.

use super::server::Server;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId};
use orchestrator::store::change::{Change, InboxResult, NewInboxRow, WriteResult};
use orchestrator::store::read::{AccountBalance, Backlog, IntentFilter, IntentPage, Payment, PspPause, Story};
use orchestrator::store::submit::{ImportResult, NewIntent, NewPayment, SubmitResult};
use orchestrator::store::{DueQuery, Loaded, Store, StoreError};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    let server = Server::start().await;
    let path = server.get("/v2/refunds").await;
    assert_eq!((path.status, path.text("code")), (404, "path_unknown"));
    let method = server.get("/v1/refunds/r-1/replay").await;
    assert_eq!((method.status, method.text("code")), (405, "method_not_allowed"));
    assert_eq!(method.header("allow"), "POST");
}

#[tokio::test]
async fn every_answer_carries_a_request_id() {
    let server = Server::start().await;
    assert_eq!(server.get("/healthz").await.header("x-request-id").len(), 36);
    let headers = [("x-request-id", "trace-7")];
    assert_eq!(server.post_with("/v1/refunds", json!({}), &headers).await.header("x-request-id"), "trace-7");
    let headers = [("x-request-id", "has spaces")];
    assert_eq!(server.post_with("/v1/refunds", json!({}), &headers).await.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn a_replica_is_ready_until_someone_says_why_not() {
    let server = Server::start().await;
    assert_eq!(server.get("/readyz").await.body, json!({ "ready": true, "reasons": [] }));
    server.readiness.set("lease", "the lease service does not answer");
    let reply = server.get("/readyz").await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.body, json!({ "ready": false, "reasons": ["the lease service does not answer"] }));
    // It still serves.
    assert_eq!(server.get("/v1/refunds").await.status, 200);
    server.readiness.clear("lease");
    assert_eq!(server.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let server = Server::start().await;
    let reply = server.get("/metrics").await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").starts_with("text/plain; version=0.0.4"), "{reply:?}");
    let text = reply.body.as_str().unwrap();
    assert!(text.contains("fence_reject_total{resource_kind=\"intent\"} 1"), "{text}");
}

/// A database that is away.
#[derive(Debug)]
struct Away;

fn away<T>() -> Result<T, StoreError> {
    Err(StoreError::Unavailable("away".to_owned()))
}

#[async_trait]
impl Store for Away {
    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        away()
    }
    async fn import_payments(&self, _: &[NewPayment]) -> Result<Vec<ImportResult>, StoreError> {
        away()
    }
    async fn submit(&self, _: &[NewIntent]) -> Result<Vec<SubmitResult>, StoreError> {
        away()
    }
    async fn due(&self, _: &DueQuery) -> Result<Vec<IntentId>, StoreError> {
        away()
    }
    async fn unread_among(&self, _: &[IntentId]) -> Result<Vec<IntentId>, StoreError> {
        away()
    }
    async fn load(&self, _: &[IntentId]) -> Result<Loaded, StoreError> {
        away()
    }
    async fn apply(&self, _: &[Change]) -> Result<Vec<WriteResult>, StoreError> {
        away()
    }
    async fn append_inbox(&self, _: &[NewInboxRow]) -> Result<Vec<InboxResult>, StoreError> {
        away()
    }
    async fn pause_psp(&self, _: &str, _: &str, _: &str) -> Result<(), StoreError> {
        away()
    }
    async fn resume_psp(&self, _: &str, _: &str, _: &str) -> Result<bool, StoreError> {
        away()
    }
    async fn psp_pauses(&self) -> Result<Vec<PspPause>, StoreError> {
        away()
    }
    async fn payment(&self, _: &PaymentId) -> Result<Option<Payment>, StoreError> {
        away()
    }
    async fn find(&self, _: &str, _: usize) -> Result<Vec<IntentId>, StoreError> {
        away()
    }
    async fn story(&self, _: &IntentId) -> Result<Option<Story>, StoreError> {
        away()
    }
    async fn list(&self, _: &IntentFilter, _: Option<&str>, _: usize) -> Result<IntentPage, StoreError> {
        away()
    }
    async fn balances(&self) -> Result<Vec<AccountBalance>, StoreError> {
        away()
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        away()
    }
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_503_with_retry_after() {
    let server = Server::start_on(Arc::new(Away)).await;
    for path in ["/v1/refunds", "/v1/refunds/r-1", "/v1/payments/p-1", "/v1/ledger/balances", "/v1/psps"] {
        let reply = server.get(path).await;
        assert_eq!(
            (reply.status, reply.text("code"), reply.header("retry-after")),
            (503, "store_unavailable", "1"),
            "{path}"
        );
    }
    let reply = server.refund("r-1", "p-1", 100, "EUR").await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert_eq!(ready.body["reasons"], json!(["the database did not answer: away"]));
    assert_eq!(server.get("/healthz").await.status, 200);
}
