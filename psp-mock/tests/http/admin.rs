//! Admin calls under `/_mock/`: the same as the library's methods, in JSON.

use crate::support::{Psp, send};
use serde_json::{Value, json};

impl Psp {
    async fn admin(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("is a method");
        let mut request = self.client.request(method, format!("{}/_mock/{path}", self.mock.url()));
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = send(request).await.expect("is answered");
        (answer.status, answer.json)
    }
}

#[tokio::test]
async fn faults_are_added_shown_and_removed() {
    let psp = Psp::start().await;
    let faults = json!([
        {"match": {"intent": "rf_1", "nth": 2}, "effects": [{"kind": "answer_lost", "how": "hang"}]},
        {"match": {"call": "list"}, "count": 0, "effects": [{"kind": "latency", "ms": 10}, {"kind": "truncated"}]},
        {"effects": [{"kind": "webhook", "mode": "duplicate", "times": 3}]},
        {"effects": [{"kind": "settlement", "gap": "amount_off", "by": -5}]},
    ]);
    assert_eq!(psp.admin("POST", "faults", faults).await, (200, json!({"added": [1, 2, 3, 4]})));
    let one = json!({"effects": [{"kind": "refuse", "code": "charge_not_refundable"}]});
    assert_eq!(psp.admin("POST", "faults", one).await, (200, json!({"added": [5]})));
    assert_eq!(psp.admin("DELETE", "faults/2", Value::Null).await.0, 204);
    assert_eq!(psp.admin("DELETE", "faults/2", Value::Null).await.0, 404);
    let (_, shown) = psp.admin("GET", "faults", Value::Null).await;
    let ids: Vec<_> = shown["faults"].as_array().expect("is a list").iter().map(|fault| &fault["id"]).collect();
    assert_eq!(ids, [1, 3, 4, 5]);
    assert_eq!(psp.admin("DELETE", "faults", Value::Null).await.0, 204);
    assert_eq!(psp.admin("GET", "faults", Value::Null).await.1, json!({"faults": []}));
}

#[tokio::test]
async fn a_script_that_makes_no_sense_is_refused_with_the_reason() {
    let psp = Psp::start().await;
    for (fault, reason) in [
        (json!({"effects": []}), "at least one effect"),
        (json!({"effects": [{"kind": "explode"}]}), "unknown variant `explode`"),
        (json!({"effects": [{"kind": "latency"}]}), "missing field `ms`"),
        (json!({"effects": [{"kind": "latency", "ms": 1, "sec": 2}]}), "unknown field `sec`"),
        (json!({"match": {"payer": "x"}, "effects": [{"kind": "dropped"}]}), "unknown field `payer`"),
        (json!({"match": {"nth": 0}, "effects": [{"kind": "dropped"}]}), "nth counts from 1"),
        (json!({"effects": [{"kind": "dropped"}, {"kind": "settlement", "gap": "missing"}]}), "stands alone"),
    ] {
        let (status, answer) = psp.admin("POST", "faults", fault.clone()).await;
        assert_eq!(status, 400, "{fault}");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(reason)), "{fault}: {answer}");
    }
}

#[tokio::test]
async fn book_and_counters_show_what_was_done_in_pages() {
    let psp = Psp::start().await;
    let payments: Vec<Value> =
        (0..5000).map(|n| json!({"id": format!("pi_{n}"), "amount": 500, "currency": "eur"})).collect();
    let (status, added) = psp.admin("POST", "payments", json!(payments)).await;
    assert_eq!((status, added["added"].as_array().map(Vec::len)), (200, Some(5000)));
    assert_eq!(psp.admin("POST", "payments", json!({"id": "pi_1", "amount": 5, "currency": "eur"})).await.0, 400);
    for (payment, intent) in [("pi_1", "rf_a"), ("pi_1", "rf_b"), ("pi_2", "rf_c")] {
        psp.refund(payment, intent).await.expect("is answered");
    }
    for (query, expected, next) in [
        ("", vec!["rf_a", "rf_b", "rf_c"], Value::Null),
        ("?limit=2", vec!["rf_a", "rf_b"], json!(2)),
        ("?limit=2&from=2", vec!["rf_c"], Value::Null),
        ("?intent=rf_b", vec!["rf_b"], Value::Null),
        ("?payment=pi_1", vec!["rf_a", "rf_b"], Value::Null),
        ("?payment=pi_none", vec![], Value::Null),
    ] {
        let (_, book) = psp.admin("GET", &format!("book{query}"), Value::Null).await;
        let refunds = book["refunds"].as_array().expect("is a list").clone();
        let intents: Vec<_> =
            refunds.iter().map(|refund| refund["metadata"]["intent_id"].as_str().unwrap_or("")).collect();
        assert_eq!((intents, &book["next"]), (expected, &next), "{query}");
    }
    let (_, counters) = psp.admin("GET", "counters?limit=2", Value::Null).await;
    assert_eq!(
        (&counters["totals"]["refunds_executed"], counters["intents"].as_array().map(Vec::len)),
        (&json!(3), Some(2))
    );
    let (_, one) = psp.admin("GET", "counters?intent=rf_c", Value::Null).await;
    let expected = json!([{"intent": "rf_c", "creates_received": 1, "refunds_executed": 1, "distinct_keys": 1}]);
    assert_eq!(one["intents"], expected);
}

#[tokio::test]
async fn the_clock_moves_forward_disputes_open_and_a_reset_forgets() {
    let psp = Psp::start().await;
    psp.payment("a", 500, "eur");
    let (_, before) = psp.admin("GET", "clock", Value::Null).await;
    let (_, after) = psp.admin("POST", "clock", json!({"forward_ms": 60_000})).await;
    assert_eq!((&before["offset_ms"], &after["offset_ms"]), (&json!(0), &json!(60_000)));
    assert_eq!(psp.admin("POST", "disputes", json!({"payment": "ch_a"})).await.0, 204);
    assert_eq!(psp.refund("pi_a", "rf_1").await.expect("is answered").text("/error/code"), "charge_disputed");
    assert_eq!(psp.admin("POST", "disputes", json!({"payment": "ch_a", "open": false})).await.0, 204);
    assert_eq!(psp.refund("pi_a", "rf_2").await.expect("is answered").status, 200);
    assert_eq!(psp.admin("POST", "disputes", json!({"payment": "ch_none"})).await.0, 404);
    assert_eq!(psp.admin("POST", "reset", Value::Null).await.0, 204);
    assert_eq!(psp.mock.totals().refunds_executed, 0);
    assert_eq!(psp.get("/v1/charges/ch_a").await.status, 404);
}

#[tokio::test]
async fn every_effect_in_the_readme_is_taken() {
    let psp = Psp::start().await;
    let readme = include_str!("../../README.md");
    let effects: Vec<&str> = readme.split('`').filter(|code| code.starts_with("{\"kind\"")).collect();
    assert_eq!(effects.len(), 18);
    for effect in effects {
        let effect: Value = serde_json::from_str(effect).expect(effect);
        assert_eq!(psp.admin("POST", "faults", json!({"effects": [effect]})).await.0, 200, "{effect}");
    }
    let fault = readme.lines().find(|line| line.starts_with("{\"match\"")).expect("is there");
    assert_eq!(psp.admin("POST", "faults", serde_json::from_str(fault).expect("is JSON")).await.0, 200);
}
