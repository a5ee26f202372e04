//! Finding and listing refunds, payments and balances.

use super::server::Server;
use jobs::refund::state::State;
use serde_json::{Value, json};

#[tokio::test]
async fn any_id_finds_the_refund() {
    let server = Server::start().await;
    server.payment("p-1", 10_000, "EUR").await;
    let body = json!({
        "intent_id": "r-1", "payment_id": "p-1", "amount": "10.00", "currency": "EUR", "merchant_reference": "order 7/b",
    });
    assert_eq!(server.post("/v1/refunds", body).await.status, 202);
    super::Holder::new(&*server.store).bring("r-1", State::Succeeded).await;
    for id in ["r-1", "p-1", "pi_p-1", "re_r-1", "order%207%2Fb"] {
        let reply = server.get(&format!("/v1/refunds/{id}")).await;
        assert_eq!((reply.status, reply.body["refund"]["intent_id"].as_str()), (200, Some("r-1")), "{id}: {reply:?}");
    }
    let none = server.get("/v1/refunds/r-2").await;
    assert_eq!((none.status, none.text("code")), (404, "refund_unknown"));
}

#[tokio::test]
async fn an_id_of_several_refunds_lists_them_and_an_intent_id_is_never_ambiguous() {
    let server = Server::start().await;
    server.payment("r-1", 10_000, "EUR").await;
    for intent in ["r-1", "r-2"] {
        assert_eq!(server.refund(intent, "r-1", 1_000, "EUR").await.status, 202);
    }
    let listed = server.get("/v1/refunds/pi_r-1").await;
    assert_eq!((listed.status, listed.body["refunds"].as_array().map(Vec::len)), (200, Some(2)));
    let story = server.get("/v1/refunds/r-1").await;
    assert_eq!(story.body["refund"]["intent_id"], "r-1");
}

#[tokio::test]
async fn a_story_tells_attempts_transfers_and_what_happens_next() {
    let server = Server::start().await;
    server.refund_in("r-1", State::Succeeded).await;
    let story = server.get("/v1/refunds/r-1").await.body;
    assert_eq!(story["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!(story["attempts"][0]["outcome"]["outcome"], "unknown");
    assert_eq!(story["transfers"][0]["kind"], "post");
    assert_eq!(story["transfers"][0]["amount_minor"], "1000");
    assert_eq!(story["payment"]["refunded_minor"], "1000");
    assert!(story["why_it_waits"].as_str().unwrap().starts_with("It does not wait"), "{story}");
}

fn ids(body: &Value) -> Vec<&str> {
    body["refunds"].as_array().unwrap().iter().map(|refund| refund["intent_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn refunds_are_listed_by_filter_newest_first() {
    let server = Server::start().await;
    server.refund_in("r-1", State::Succeeded).await;
    server.refund_in("r-2", State::Unknown).await;
    server.refund_in("r-3", State::NeedsReview).await;
    server.refund_in("r-4", State::Recorded).await;
    for (query, expected) in [
        ("", vec!["r-4", "r-3", "r-2", "r-1"]),
        ("?state=succeeded", vec!["r-1"]),
        ("?state=pending", vec!["r-4", "r-2"]),
        ("?state=unknown,needs_review", vec!["r-3", "r-2"]),
        ("?psp=acme&payment_id=p-r-1", vec!["r-1"]),
        ("?psp=other", vec![]),
        ("?created_before=2020-01-01", vec![]),
        ("?created_from=2020-01-01T00:00:00Z&limit=1", vec!["r-4"]),
    ] {
        let reply = server.get(&format!("/v1/refunds{query}")).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
        assert_eq!(ids(&reply.body), expected, "{query}");
    }
    for query in [
        "?state=done",
        "?limit=0",
        "?limit=501",
        "?created_from=monday",
        "?surprise=1",
        "?payment_id=a%20b",
        "?cursor=x",
        "?cursor=1%00",
        "?psp=%00",
        "?merchant_reference=a%00b",
    ] {
        let reply = server.get(&format!("/v1/refunds{query}")).await;
        assert_eq!((reply.status, reply.text("code")), (400, "invalid_query"), "{query}: {reply:?}");
    }
}

#[tokio::test]
async fn pages_follow_one_another_without_gap_or_repeat() {
    let server = Server::start().await;
    server.payment("p-1", 10_000, "EUR").await;
    for n in 0..7 {
        assert_eq!(server.refund(&format!("r-{n}"), "p-1", 100, "EUR").await.status, 202);
    }
    let (mut seen, mut query) = (Vec::new(), "?limit=3".to_owned());
    loop {
        let page = server.get(&format!("/v1/refunds{query}")).await.body;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("?limit=3&cursor={cursor}");
    }
    assert_eq!(seen, ["r-6", "r-5", "r-4", "r-3", "r-2", "r-1", "r-0"]);
}

#[tokio::test]
async fn payments_are_imported_once_and_conflicts_are_named() {
    let server = Server::start().await;
    let payment = |id: &str, amount: &str| json!({ "payment_id": id, "psp": "acme", "psp_payment_ref": format!("pi_{id}"), "currency": "EUR", "amount": amount });
    for (body, status) in [
        (payment("p-1", "10.00"), 201),
        (payment("p-1", "10.00"), 200),
        (payment("p-1", "11.00"), 409),
        (json!([payment("p-1", "10.00"), payment("p-2", "20.00")]), 200),
        (json!([payment("p-2", "21.00"), payment("p-3", "30.00")]), 409),
        (json!([]), 400),
        (json!([payment("p-4", "1.00"), payment("p-5", "x")]), 400),
        (
            json!({ "payment_id": "p-6", "psp": "other", "psp_payment_ref": "x", "currency": "EUR", "amount": "1.00" }),
            422,
        ),
    ] {
        let reply = server.post("/v1/payments", body.clone()).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
    }
    for (id, status) in [("p-1", 200), ("p-2", 200), ("p-3", 200), ("p-4", 404), ("p-6", 404)] {
        assert_eq!(server.get(&format!("/v1/payments/{id}")).await.status, status, "{id}");
    }
    assert_eq!(server.get("/v1/payments/p-2").await.text("captured"), "20.00");
}

#[tokio::test]
async fn balances_sum_transfers_by_account() {
    let server = Server::start().await;
    server.refund_in("r-1", State::Succeeded).await;
    server.refund_in("r-2", State::Succeeded).await;
    let balances = server.get("/v1/ledger/balances").await.body;
    let accounts: Vec<_> = balances["balances"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["account"].as_str().unwrap(), row["balance"].as_str().unwrap()))
        .collect();
    assert_eq!(accounts, [("customer_refunds:EUR", "20.00"), ("psp_clearing:acme:EUR", "-20.00")]);
}
