//! Submitting: what is accepted, repeated and refused, and that only what is accepted reserves.

use super::server::{Server, UNSENDABLE_MINOR, refundable};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn body(changes: Value) -> Value {
    let mut body = json!({ "intent_id": "r-1", "payment_id": "p-1", "amount": "40.00", "currency": "EUR" });
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn a_submit_answers_202_then_200_for_the_same_body_and_409_for_another() {
    let server = Server::start().await;
    server.payment("p-1", 10_000, "EUR").await;
    server.payment("p-2", 10_000, "EUR").await;
    let first = server.post("/v1/refunds", body(json!({ "merchant_reference": "o-1" }))).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(first.header("location"), "/v1/refunds/r-1");
    assert_eq!((first.text("amount"), first.text("amount_minor")), ("40.00", "4000"));
    assert_eq!((first.text("status"), first.text("state")), ("pending", "recorded"));
    for (changes, status) in [
        (json!({}), 200),
        (json!({ "amount": null, "amount_minor": "4000" }), 200),
        (json!({ "amount": null, "amount_minor": 4000 }), 200),
        (json!({ "amount": "50.00" }), 409),
        (json!({ "amount": "500.00" }), 409),
        (json!({ "payment_id": "p-2" }), 409),
        (json!({ "payment_id": "p-unknown" }), 409),
        (json!({ "currency": "USD" }), 409),
        (json!({ "merchant_reference": "o-2" }), 409),
        (json!({ "merchant_reference": null }), 409),
        (json!({ "reason": "another" }), 409),
    ] {
        let mut wanted = body(json!({ "merchant_reference": "o-1" }));
        for (name, value) in changes.as_object().unwrap() {
            wanted[name] = value.clone();
        }
        let reply = server.post("/v1/refunds", wanted).await;
        assert_eq!(reply.status, status, "{changes}: {reply:?}");
        if status == 409 {
            assert_eq!(reply.text("code"), "intent_conflict");
            assert_eq!(reply.header("content-type"), "application/problem+json");
        }
    }
    assert_eq!(refundable(&server, "p-1").await, "6000");
    assert_eq!(refundable(&server, "p-2").await, "10000");
}

#[tokio::test]
async fn what_is_not_a_valid_refund_is_refused_and_reserves_nothing() {
    let server = Server::start().await;
    server.payment("p-1", 10_000, "EUR").await;
    for (changes, status, code) in [
        (json!({ "amount": -5000 }), 400, "invalid_body"),
        (json!({ "amount": 0 }), 400, "invalid_body"),
        (json!({ "amount": 40.0 }), 400, "invalid_body"),
        (json!({ "amount": "-50.00" }), 400, "invalid_amount"),
        (json!({ "amount": "0.00" }), 400, "invalid_amount"),
        (json!({ "amount": "1e3" }), 400, "invalid_amount"),
        (json!({ "amount": "NaN" }), 400, "invalid_amount"),
        (json!({ "amount": "" }), 400, "invalid_amount"),
        (json!({ "amount": "1.005" }), 400, "invalid_amount"),
        (json!({ "amount": null }), 400, "invalid_amount"),
        (json!({ "amount": null, "amount_minor": 0 }), 400, "invalid_amount"),
        (json!({ "amount": null, "amount_minor": -5000 }), 400, "invalid_amount"),
        (json!({ "amount": null, "amount_minor": "4e3" }), 400, "invalid_amount"),
        (json!({ "amount": null, "amount_minor": 4000.0 }), 400, "invalid_body"),
        (json!({ "amount": null, "amount_minor": 9_223_372_036_854_775_808_u64 }), 400, "invalid_amount"),
        (json!({ "amount_minor": 4000 }), 400, "invalid_amount"),
        (json!({ "currency": "eur" }), 400, "invalid_currency"),
        (json!({ "currency": "EURO" }), 400, "invalid_currency"),
        (json!({ "currency": null }), 400, "invalid_body"),
        (json!({ "intent_id": "" }), 400, "invalid_identifier"),
        (json!({ "intent_id": "a b" }), 400, "invalid_identifier"),
        (json!({ "intent_id": "x".repeat(129) }), 400, "invalid_identifier"),
        (json!({ "payment_id": "a/b" }), 400, "invalid_identifier"),
        (json!({ "reason": "two\nlines" }), 400, "invalid_text"),
        (json!({ "reason": "x".repeat(501) }), 400, "invalid_text"),
        (json!({ "merchant_reference": " " }), 400, "invalid_text"),
        (json!({ "surprise": 1 }), 400, "invalid_body"),
        (json!({ "payment_id": "p-9" }), 404, "payment_unknown"),
        (json!({ "amount": "100.01" }), 422, "exceeds_refundable"),
        (json!({ "currency": "GBP" }), 422, "payment_mismatch"),
        (json!({ "amount": null, "amount_minor": UNSENDABLE_MINOR }), 422, "psp_refuses_amount"),
    ] {
        let reply = server.post("/v1/refunds", body(changes.clone())).await;
        assert_eq!((reply.status, reply.text("code")), (status, code), "{changes}: {reply:?}");
        assert!(!reply.text("detail").is_empty() && !reply.text("title").is_empty(), "{reply:?}");
        assert_eq!(reply.body["status"], status);
    }
    assert_eq!(refundable(&server, "p-1").await, "10000");
    assert_eq!(server.get("/v1/refunds").await.body["refunds"], json!([]));
}

#[tokio::test]
async fn a_refund_beyond_what_is_left_says_how_much_is() {
    let server = Server::start().await;
    server.payment("p-1", 10_000, "EUR").await;
    assert_eq!(server.refund("r-1", "p-1", 6_000, "EUR").await.status, 202);
    let reply = server.refund("r-2", "p-1", 6_000, "EUR").await;
    assert_eq!((reply.status, reply.text("code")), (422, "exceeds_refundable"));
    assert_eq!(
        (reply.text("refundable_minor"), reply.text("refundable"), reply.text("currency")),
        ("4000", "40.00", "EUR")
    );
}

#[tokio::test]
async fn the_idempotency_key_must_be_the_intent_id() {
    let server = Server::start().await;
    server.payment("p-1", 10_000, "EUR").await;
    let with = async |key: &str| server.post_with("/v1/refunds", body(json!({})), &[("idempotency-key", key)]).await;
    let other = with("r-2").await;
    assert_eq!((other.status, other.text("code")), (400, "idempotency_key_mismatch"));
    assert_eq!(with("r-1").await.status, 202);
    assert_eq!(with("r-1").await.status, 200);
}

#[tokio::test]
async fn a_body_must_be_json_and_not_too_long() {
    let server = Server::start().await;
    for (text, content_type, status, code) in [
        ("{}".to_owned(), "text/plain", 415, "not_json"),
        ("{}".to_owned(), "", 415, "not_json"),
        ("{".to_owned(), "application/json", 400, "invalid_body"),
        ("[]".to_owned(), "application/json; charset=utf-8", 400, "invalid_body"),
        (r#"{"intent_id":"a","intent_id":"b"}"#.to_owned(), "application/json", 400, "invalid_body"),
        (format!("\"{}\"", "x".repeat(65 << 10)), "application/json", 413, "body_too_large"),
    ] {
        let reply = server.post_raw("/v1/refunds", text, &[("content-type", content_type)]).await;
        assert_eq!((reply.status, reply.text("code")), (status, code), "{content_type}");
    }
}

#[tokio::test]
async fn big_numbers_keep_their_digits() {
    let server = Server::start().await;
    server.payment("p-1", 9_007_199_254_740_993, "USD").await;
    let reply = server.refund("3605856439401412608", "p-1", 9_007_199_254_740_993, "USD").await;
    assert_eq!(reply.status, 202);
    assert_eq!((reply.text("amount_minor"), reply.text("amount")), ("9007199254740993", "90071992547409.93"));
    assert_eq!(reply.text("intent_id"), "3605856439401412608");
}

/// Many at once: exactly as many are accepted as fit, whichever transaction each one shares.
async fn check_race(captured: i64, minor: i64, count: usize, accepted: usize) {
    let server = Arc::new(Server::start().await);
    server.payment("p-1", captured, "USD").await;
    let mut requests = tokio::task::JoinSet::new();
    for n in 0..count {
        let server = server.clone();
        requests.spawn(async move { server.refund(&format!("r-{n}"), "p-1", minor, "USD").await.status });
    }
    let mut statuses = BTreeMap::new();
    for status in requests.join_all().await {
        *statuses.entry(status).or_insert(0) += 1;
    }
    let expected = BTreeMap::from([(202, accepted), (422, count - accepted)]);
    assert_eq!(statuses, expected);
    let left = captured - minor * i64::try_from(accepted).unwrap();
    assert_eq!(refundable(&server, "p-1").await, left.to_string());
}

#[tokio::test]
async fn refunds_at_once_never_exceed_the_capture() {
    for (captured, minor, count, accepted) in [(10_000, 6_000, 2, 1), (10_000, 3_000, 20, 3), (392, 392, 2, 1)] {
        check_race(captured, minor, count, accepted).await;
    }
}

#[tokio::test]
async fn one_intent_sent_many_times_at_once_is_recorded_once() {
    let server = Arc::new(Server::start().await);
    server.payment("p-1", 10_000, "USD").await;
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let server = server.clone();
        requests.spawn(async move { server.refund("r-1", "p-1", 1_000, "USD").await.status });
    }
    let statuses = requests.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 49);
    assert_eq!(refundable(&server, "p-1").await, "9000");
}
