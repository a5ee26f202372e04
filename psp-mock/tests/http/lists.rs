//! Lists: newest first, paged in both directions, filtered; balance transactions tell the same story as the refunds.

use crate::support::{Answer, Psp};
use std::time::Duration;

fn ids(answer: &Answer) -> Vec<String> {
    let data = answer.json["data"].as_array().expect("is a list");
    data.iter().map(|object| object["id"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Three refunds of `a`, one of `b`, one second apart; their ids, oldest first, and the first one's second.
async fn four_refunds(psp: &Psp) -> (Vec<String>, i64) {
    psp.payment("a", 1000, "eur");
    psp.payment("b", 1000, "usd");
    let (mut made, mut first_s) = (Vec::new(), 0);
    for (number, payment) in ["pi_a", "pi_a", "pi_b", "pi_a"].into_iter().enumerate() {
        let refund = psp.refund(payment, &format!("rf_{number}")).await.expect("is answered");
        made.push(refund.text("/id").to_owned());
        if number == 0 {
            first_s = refund.json["created"].as_i64().expect("is a number");
        }
        psp.mock.advance(Duration::from_secs(10));
    }
    (made, first_s)
}

#[tokio::test]
async fn refunds_are_listed_newest_first_by_filter_and_page() {
    let psp = Psp::start().await;
    let (made, first_s) = four_refunds(&psp).await;
    let cases = [
        (String::new(), &[3, 2, 1, 0][..], false),
        ("limit=2".to_owned(), &[3, 2], true),
        (format!("limit=2&starting_after={}", made[2]), &[1, 0], false),
        (format!("limit=1&ending_before={}", made[1]), &[2], true),
        (format!("ending_before={}", made[1]), &[3, 2], false),
        ("payment_intent=pi_a".to_owned(), &[3, 1, 0], false),
        ("charge=ch_b".to_owned(), &[2], false),
        (format!("payment_intent=pi_a&limit=1&starting_after={}", made[3]), &[1], true),
        (format!("created[gte]={}", first_s + 15), &[3, 2], false),
        (format!("created[gt]={first_s}&created[lt]={}", first_s + 25), &[2, 1], false),
        (format!("created[lte]={}", first_s + 5), &[0], false),
    ];
    for (query, expected, has_more) in cases {
        let answer = psp.get(&format!("/v1/refunds?{query}")).await;
        let expected: Vec<String> = expected.iter().map(|number: &usize| made[*number].clone()).collect();
        assert_eq!((ids(&answer), answer.json["has_more"] == true), (expected, has_more), "{query}");
    }
}

#[tokio::test]
async fn a_wrong_list_call_is_refused() {
    let psp = Psp::start().await;
    for (query, expected) in [
        ("limit=0", "400 invalid_request_error limit"),
        ("limit=101", "400 invalid_request_error limit"),
        ("limit=x", "400 invalid_request_error parameter_invalid_integer limit"),
        ("created[near]=5", "400 invalid_request_error created"),
        ("starting_after=re_none", "404 invalid_request_error resource_missing starting_after"),
        ("payment_intent=pi_none", "404 invalid_request_error resource_missing payment_intent"),
    ] {
        assert_eq!(psp.get(&format!("/v1/refunds?{query}")).await.brief(), expected, "{query}");
    }
}

#[tokio::test]
async fn every_movement_of_money_has_its_balance_transaction() {
    let psp = Psp::start().await;
    let (made, _) = four_refunds(&psp).await;
    let all = psp.get("/v1/balance_transactions?limit=100").await;
    assert_eq!(ids(&all).len(), 6);
    for (query, count) in [
        ("type=refund".to_owned(), 4),
        ("type=charge".to_owned(), 2),
        ("type=refund&currency=usd".to_owned(), 1),
        (format!("source={}", made[1]), 1),
        ("source=ch_a".to_owned(), 1),
        ("limit=3".to_owned(), 3),
    ] {
        assert_eq!(ids(&psp.get(&format!("/v1/balance_transactions?{query}")).await).len(), count, "{query}");
    }
    let refund = psp.get(&format!("/v1/refunds/{}", made[0])).await;
    let transaction = psp.get(&format!("/v1/balance_transactions/{}", refund.text("/balance_transaction"))).await;
    assert_eq!((&transaction.json["amount"], transaction.text("/source")), (&(-100).into(), made[0].as_str()));
    let charges = psp.get("/v1/charges?limit=1").await;
    assert_eq!((ids(&charges), charges.json["has_more"] == true), (vec!["ch_b".to_owned()], true));
    assert_eq!(ids(&psp.get("/v1/payment_intents?starting_after=pi_b").await), ["pi_a"]);
}
