//! Payments, charges and refunds: what is granted, what is refused and with which of Stripe's errors.

use crate::support::{Psp, send};
use psp_mock::{Config, Effect, Match};
use reqwest::Method;
use std::time::Duration;

#[tokio::test]
async fn each_wrong_request_gets_the_error_that_stripe_gives() {
    let psp = Psp::start().await;
    psp.payment("open", 1000, "eur");
    psp.payment("spent", 1000, "eur");
    psp.payment("fought", 1000, "eur");
    psp.post("/v1/refunds", "payment_intent=pi_spent", None).await;
    psp.mock.dispute("pi_fought", true).expect("payment is known");
    let unpaid = psp.post("/v1/payment_intents", "amount=5&currency=eur", None).await;
    assert_eq!(unpaid.text("/status"), "requires_confirmation");
    let unpaid = format!("payment_intent={}", unpaid.text("/id"));
    let cases = [
        ("", "400 invalid_request_error parameter_missing"),
        ("payment_intent=pi_none", "404 invalid_request_error resource_missing payment_intent"),
        ("charge=ch_none", "404 invalid_request_error resource_missing charge"),
        ("charge=pi_open", "404 invalid_request_error resource_missing charge"),
        ("payment_intent=pi_open&amount=0", "400 invalid_request_error parameter_invalid_integer amount"),
        ("payment_intent=pi_open&amount=1.5", "400 invalid_request_error parameter_invalid_integer amount"),
        ("payment_intent=pi_open&amount=1001", "400 invalid_request_error amount"),
        ("payment_intent=pi_open&reason=boredom", "400 invalid_request_error reason"),
        ("payment_intent=pi_spent", "400 invalid_request_error charge_already_refunded"),
        ("payment_intent=pi_fought", "400 invalid_request_error charge_disputed"),
        (&unpaid, "400 invalid_request_error"),
    ];
    for (form, expected) in cases {
        assert_eq!(psp.post("/v1/refunds", form, None).await.brief(), expected, "{form}");
    }
    assert_eq!(psp.mock.totals().refunds_executed, 1);
}

#[tokio::test]
async fn parts_add_up_to_the_payment_and_no_further() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    let steps = [
        ("amount=600", "200 succeeded", 600),
        ("amount=500", "400 invalid_request_error amount", 600),
        ("", "200 succeeded", 1000),
    ];
    for (form, expected, refunded) in steps {
        let answer = psp.post("/v1/refunds", &format!("charge=ch_a&{form}"), None).await;
        assert_eq!(answer.brief(), expected, "{form}");
        let charge = psp.get("/v1/charges/ch_a").await;
        assert_eq!(charge.json["amount_refunded"], refunded, "{form}");
        assert_eq!(charge.json["refunded"], refunded == 1000, "{form}");
    }
}

#[tokio::test]
async fn a_payment_becomes_refundable_once_it_is_paid() {
    let psp = Psp::start().await;
    for (form, status) in [
        ("amount=700&currency=usd&confirm=true", "succeeded"),
        ("amount=700&currency=usd&payment_method=pm_card_visa", "succeeded"),
        ("amount=700&currency=usd", "requires_confirmation"),
    ] {
        let made = psp.post("/v1/payment_intents", form, None).await;
        assert_eq!(made.brief(), format!("200 {status}"), "{form}");
        let path = format!("/v1/payment_intents/{}", made.text("/id"));
        let paid = psp.post(&format!("{path}/confirm"), "", None).await;
        assert_eq!(paid.text("/status"), "succeeded");
        assert_eq!(psp.get(&path).await.json["latest_charge"], paid.json["latest_charge"]);
        let refund = psp.post("/v1/refunds", &format!("payment_intent={}", made.text("/id")), None).await;
        assert_eq!((refund.brief().as_str(), &refund.json["charge"]), ("200 succeeded", &paid.json["latest_charge"]));
    }
    let charge = psp.post("/v1/charges", "amount=700&currency=usd&source=tok_visa&metadata[order]=7", None).await;
    assert_eq!((charge.brief().as_str(), charge.text("/metadata/order")), ("200 succeeded", "7"));
}

#[tokio::test]
async fn metadata_is_changed_by_an_update_and_removed_by_an_empty_value() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    let refund = psp.refund("pi_a", "rf_1").await.expect("is answered");
    let path = format!("/v1/refunds/{}", refund.text("/id"));
    psp.post(&path, "metadata[note]=late&metadata[who]=me", None).await;
    let answer = psp.post(&path, "metadata[note]=", None).await;
    assert_eq!(answer.json["metadata"], serde_json::json!({"intent_id": "rf_1", "who": "me"}));
    assert_eq!(psp.get(&path).await.json["metadata"], answer.json["metadata"]);
    assert_eq!(psp.get("/v1/refunds/re_none").await.brief(), "404 invalid_request_error resource_missing id");
}

#[tokio::test]
async fn only_a_pending_refund_can_be_canceled_and_its_amount_is_free_again() {
    let psp = Psp::start().await;
    psp.payment("a", 100, "eur");
    psp.fault(Match::default(), Effect::InsufficientFunds { succeeds_after_ms: Some(1000), fails_after_ms: None });
    let pending = psp.refund("pi_a", "rf_1").await.expect("is answered");
    assert_eq!((pending.text("/status"), pending.text("/pending_reason")), ("pending", "insufficient_funds"));
    assert_eq!(psp.refund("pi_a", "rf_2").await.expect("is answered").text("/error/code"), "charge_already_refunded");
    let cancel = format!("/v1/refunds/{}/cancel", pending.text("/id"));
    assert_eq!(psp.post(&cancel, "", None).await.brief(), "200 canceled");
    assert_eq!(psp.post(&cancel, "", None).await.brief(), "400 invalid_request_error");
    psp.mock.advance(Duration::from_secs(2));
    assert_eq!(psp.get(&format!("/v1/refunds/{}", pending.text("/id"))).await.text("/status"), "canceled");
    assert_eq!(psp.refund("pi_a", "rf_3").await.expect("is answered").brief(), "200 succeeded");
}

#[tokio::test]
async fn credentials_choose_the_account_and_accounts_do_not_see_each_other() {
    let accounts = vec![("sk_one".to_owned(), "acct_one".to_owned())];
    let psp = Psp::with(Config { accounts, ..Config::default() }).await;
    psp.payment("a", 1000, "eur");
    let url = format!("{}/v1/payment_intents/pi_a", psp.mock.url());
    let get = |request: reqwest::RequestBuilder| async { send(request).await.expect("is answered") };
    let plain = || psp.client.get(&url);
    let cases = [
        (plain(), 401),
        (plain().bearer_auth("pk_public"), 401),
        (plain().header("authorization", "Digest x"), 401),
        (plain().bearer_auth("sk_any"), 200),
        (plain().basic_auth("sk_any", Some("")), 200),
        (plain().bearer_auth("sk_one"), 404),
        (plain().bearer_auth("sk_one").header("stripe-account", "acct_mock"), 200),
        (plain().bearer_auth("sk_any").header("stripe-account", "acct_other"), 404),
    ];
    for (number, (request, expected)) in cases.into_iter().enumerate() {
        let answer = get(request).await;
        assert_eq!(answer.status, expected, "case {number}");
        assert!(answer.header("request-id").starts_with("req_"), "case {number}");
    }
    let unknown = psp.request(Method::DELETE, "/v1/refunds/re_1");
    assert_eq!(get(unknown).await.brief(), "404 invalid_request_error");
}
