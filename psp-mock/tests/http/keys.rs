//! Idempotency keys: what is repeated, what is refused, what is not remembered, and when a key is forgotten.

use crate::support::Psp;
use psp_mock::{Config, Effect, Executes, How, Match};
use std::time::Duration;

const REFUND: &str = "payment_intent=pi_a&amount=100&metadata[intent_id]=rf_1";

#[tokio::test]
async fn the_first_result_is_repeated_to_the_same_call_and_refused_to_another() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    let first = psp.post("/v1/refunds", REFUND, Some("k")).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (200, ""));
    let reordered = "metadata[intent_id]=rf_1&amount=100&payment_intent=pi_a";
    let cases = [
        ("/v1/refunds", REFUND, "200 succeeded"),
        ("/v1/refunds", reordered, "200 succeeded"),
        ("/v1/refunds", "payment_intent=pi_a&amount=101&metadata[intent_id]=rf_1", "400 idempotency_error"),
        ("/v1/refunds", "payment_intent=pi_a&amount=100&metadata[intent_id]=rf_2", "400 idempotency_error"),
        ("/v1/charges", "amount=100&currency=eur", "400 idempotency_error"),
        ("/v1/refunds", "", "400 idempotency_error"),
    ];
    for (path, form, expected) in cases {
        let answer = psp.post(path, form, Some("k")).await;
        assert_eq!(answer.brief(), expected, "{path} {form}");
        if answer.status == 200 {
            assert_eq!((&answer.json, answer.header("idempotent-replayed")), (&first.json, "true"), "{form}");
        }
    }
    assert_eq!((psp.executed("rf_1"), psp.executed("rf_2")), (1, 0));
    let counters = psp.mock.counters("rf_1").expect("was seen");
    assert_eq!((counters.creates_received, counters.distinct_keys), (4, 1));
}

#[tokio::test]
async fn failures_are_remembered_exactly_when_execution_had_begun() {
    let over = "payment_intent=pi_a&amount=5000";
    let server_error = |executed, stored| match executed {
        true => Effect::ErrorExecuted { status: 500, stored },
        false => Effect::ErrorNotExecuted { status: 503, stored },
    };
    // fault, first form, first answer, second form, second answer, second is a repeat
    let cases = [
        (None, "", "400 invalid_request_error parameter_missing", REFUND, "200 succeeded", false),
        (None, over, "400 invalid_request_error amount", over, "400 invalid_request_error amount", true),
        (
            Some(Effect::RateLimited { retry_after_s: None }),
            REFUND,
            "429 invalid_request_error rate_limit",
            REFUND,
            "200 succeeded",
            false,
        ),
        (Some(server_error(false, false)), REFUND, "503 api_error", REFUND, "200 succeeded", false),
        (Some(server_error(false, true)), REFUND, "503 api_error", REFUND, "503 api_error", true),
        (Some(server_error(true, true)), REFUND, "500 api_error", REFUND, "500 api_error", true),
        (Some(server_error(true, false)), REFUND, "500 api_error", REFUND, "200 succeeded", true),
    ];
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    for (number, (fault, first_form, first, second_form, second, repeated)) in cases.into_iter().enumerate() {
        let key = format!("k{number}");
        if let Some(effect) = fault {
            psp.fault(Match::default(), effect);
        }
        assert_eq!(psp.post("/v1/refunds", first_form, Some(&key)).await.brief(), first, "case {number}");
        let answer = psp.post("/v1/refunds", second_form, Some(&key)).await;
        assert_eq!(answer.brief(), second, "case {number}");
        assert_eq!(answer.header("idempotent-replayed") == "true", repeated, "case {number}");
    }
}

#[tokio::test]
async fn a_key_in_flight_refuses_a_second_call_until_the_first_is_answered() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    for (intent, effect) in [
        ("rf_first", Effect::Latency { ms: 60_000, executes: Executes::First }),
        ("rf_last", Effect::Latency { ms: 60_000, executes: Executes::Last }),
        ("rf_late", Effect::ExecutesLate { after_ms: 60_000, how: How::Close }),
    ] {
        psp.fault(Match::intent(intent), effect);
        let slow = async {
            let lost = psp.refund("pi_a", intent).await;
            assert!(lost.is_err(), "{intent} was answered: {lost:?}");
            std::future::pending().await
        };
        let impatient = async {
            while psp.mock.counters(intent).is_none() {
                tokio::task::yield_now().await;
            }
            psp.refund("pi_a", intent).await.expect("is answered")
        };
        let second = tokio::select! {
            biased;
            second = impatient => second,
            never = slow => never,
        };
        assert_eq!(second.brief(), "409 idempotency_error idempotency_key_in_use", "{intent}");
    }
}

#[tokio::test]
async fn a_key_is_forgotten_after_its_lifetime_and_the_same_call_then_runs_as_new() {
    let psp = Psp::with(Config { key_lifetime: Duration::from_secs(100), ..Config::default() }).await;
    psp.payment("a", 1000, "eur");
    for (forward_s, executed) in [(0, 1), (98, 1), (3, 2), (1, 2), (101, 3)] {
        psp.mock.advance(Duration::from_secs(forward_s));
        assert_eq!(psp.post("/v1/refunds", REFUND, Some("k")).await.status, 200);
        assert_eq!(psp.executed("rf_1"), executed, "after {forward_s} s more");
    }
    assert_eq!(psp.mock.totals().intents_refunded_more_than_once, 1);
}

#[tokio::test]
async fn keys_belong_to_an_account_and_have_a_longest_length() {
    let accounts = vec![("sk_one".to_owned(), "acct_one".to_owned())];
    let psp = Psp::with(Config { accounts, ..Config::default() }).await;
    for (api_key, replayed) in [("sk_one", ""), ("sk_two", ""), ("sk_two", "true"), ("sk_three", "true")] {
        let charge = psp.client.post(format!("{}/v1/charges", psp.mock.url())).bearer_auth(api_key);
        let charge = charge.header("idempotency-key", "k").body("amount=5&currency=eur");
        let answer = crate::support::send(charge).await.expect("is answered");
        assert_eq!((answer.status, answer.header("idempotent-replayed")), (200, replayed), "{api_key}");
    }
    for (length, status) in [(255, 200), (256, 400)] {
        let answer = psp.post("/v1/charges", "amount=5&currency=eur", Some(&"k".repeat(length))).await;
        assert_eq!(answer.status, status, "{length}");
    }
}
