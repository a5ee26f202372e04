//! Reading all refunds of a payment, page by page.

use super::responder::{Reply, Responder, response};
use super::stages::Stage;
use super::{create, intent_of, is_unknown, lookup, refund, stripe_at};
use jobs::refund::intent::Intent;
use jobs::refund::outcome::Outcome;
use jobs::refund::state::PspStatus::{Failed, Succeeded};
use psp_mock::{CallKind, Effect, Fault, Match};

const OURS: &str = r#"{"id":"re_1","amount":1000,"currency":"eur","status":"succeeded","metadata":{"intent_id":"r1"}}"#;

/// What a lookup makes of these pages; `asked` is the last request's target.
async fn read(pages: &[&str], psp_refund_ref: Option<&str>) -> (Outcome, Vec<String>) {
    let replies = pages.iter().map(|body| Reply::Bytes(response(200, "", body))).collect();
    let responder = Responder::start(replies).await;
    let provider = stripe_at(&responder.url());
    let intent = intent_of(&provider, "r1", 1_000, "EUR");
    let intent = Intent { psp_refund_ref: psp_refund_ref.map(str::to_owned), ..intent };
    let outcome = lookup(&provider, &intent).await;
    let targets = responder.requests();
    (outcome, targets.iter().map(|request| request.split(' ').nth(1).unwrap().to_owned()).collect())
}

fn page(has_more: bool, refunds: &[&str]) -> String {
    format!(r#"{{"object":"list","has_more":{has_more},"data":[{}]}}"#, refunds.join(","))
}

#[tokio::test]
async fn a_refund_behind_a_hundred_and_fifty_others_is_found_and_a_missing_one_is_absent() {
    let stage = Stage::stripe().await;
    let mine = stage.intent("mine", 1_000_000);
    create(stage.provider(), &mine).await;
    for number in 0..150 {
        let other = stage.intent(&format!("other_{number}"), 1_000);
        let body = String::from_utf8(other.create_body.clone()).unwrap();
        let body = body.replace(&other.psp_payment_ref, &mine.psp_payment_ref).into_bytes();
        let on_mine = Intent { create_body: body, ..other };
        assert!(matches!(create(stage.provider(), &on_mine).await, Outcome::Accepted { .. }));
    }
    let outcome = lookup(stage.provider(), &mine).await;
    assert!(matches!(&outcome, Outcome::Found { refunds } if refunds.len() == 1), "{outcome:?}");
    let missing = stage.intent("missing", 1_000);
    let missing = Intent { psp_payment_ref: mine.psp_payment_ref.clone(), ..missing };
    assert_eq!(lookup(stage.provider(), &missing).await, Outcome::Absent);
    let Stage::Stripe { mock, .. } = &stage else { unreachable!("a stripe stage") };
    let second_page = Match { nth: Some(2), ..Match::call(CallKind::List) };
    mock.add_fault(Fault::once(second_page, Effect::ErrorNotExecuted { status: 500, stored: false })).unwrap();
    let outcome = lookup(stage.provider(), &mine).await;
    assert!(is_unknown(&outcome), "half a list proves nothing, even with a hit: {outcome:?}");
}

#[tokio::test]
async fn pages_are_asked_for_one_after_the_other() {
    let pages = [page(true, &[r#"{"id":"re_3"}"#, r#"{"id":"re_2"}"#]), page(false, &[OURS])];
    let (outcome, targets) = read(&[&pages[0], &pages[1]], None).await;
    assert_eq!(outcome, Outcome::Found { refunds: vec![refund("re_1", Succeeded, 1_000, "EUR", None)] });
    assert_eq!(
        targets,
        [
            "/v1/refunds?payment_intent=pi_r1&limit=100",
            "/v1/refunds?payment_intent=pi_r1&limit=100&starting_after=re_2"
        ]
    );
}

#[tokio::test]
async fn every_hit_is_shown_whatever_its_amount() {
    let twin = OURS.replace("re_1", "re_2").replace("1000", "999").replace("succeeded", "failed");
    let (outcome, _) = read(&[&page(false, &[OURS, &twin])], None).await;
    let both = vec![refund("re_1", Succeeded, 1_000, "EUR", None), refund("re_2", Failed, 999, "EUR", None)];
    assert_eq!(outcome, Outcome::Found { refunds: both });
    let (outcome, _) = read(&[&page(true, &[OURS]), &page(false, &[OURS])], None).await;
    assert!(
        matches!(&outcome, Outcome::Found { refunds } if refunds.len() == 1),
        "one refund on two pages: {outcome:?}"
    );
}

#[tokio::test]
async fn only_a_complete_reading_shows_absence() {
    let other = r#"{"id":"re_9","amount":1,"currency":"zzz","metadata":{"intent_id":"r11"}}"#;
    for (pages, absent) in [
        (vec![page(false, &[])], true),
        (vec![page(false, &[other])], true),
        (vec![page(false, &[r#"{"id":"re_9","metadata":{}}"#, r#"{"id":"re_8","metadata":null}"#])], true),
        (vec![page(true, &[other])], false),
        (vec![page(true, &[])], false),
        (vec![page(true, &[r#"{"amount":1}"#])], false),
        (vec![page(true, &[other]), page(true, &[other])], false),
        (vec![r#"{"data":[]}"#.to_owned()], false),
        (vec![r#"{"has_more":false}"#.to_owned()], false),
        (vec!["[]".to_owned()], false),
        (vec![page(false, &[&OURS.replace(r#""amount":1000,"#, "")])], false),
        (vec![page(false, &[&OURS.replace("eur", "zzz")])], false),
        (vec![page(false, &[OURS, &OURS.replace(r#""amount":1000,"#, "")])], false),
    ] {
        let shown: Vec<&str> = pages.iter().map(String::as_str).collect();
        let (outcome, _) = read(&shown, None).await;
        assert_eq!((outcome == Outcome::Absent, is_unknown(&outcome)), (absent, !absent), "{pages:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_list_without_end_is_given_up() {
    let pages: Vec<String> = (0..100).map(|number| page(true, &[&format!(r#"{{"id":"re_{number}"}}"#)])).collect();
    let shown: Vec<&str> = pages.iter().map(String::as_str).collect();
    let (outcome, targets) = read(&shown, None).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert_eq!(targets.len(), 100);
}

#[tokio::test]
async fn a_known_refund_is_read_by_its_id() {
    let (outcome, targets) = read(&[OURS], Some("re_1")).await;
    assert_eq!(outcome, Outcome::Found { refunds: vec![refund("re_1", Succeeded, 1_000, "EUR", None)] });
    assert_eq!(targets, ["/v1/refunds/re_1"]);
    let (outcome, _) = read(&[OURS], Some("re_2")).await;
    assert!(is_unknown(&outcome), "another refund is shown: {outcome:?}");
    let (outcome, _) = read(&[&OURS.replace("\"r1\"", "\"r2\"")], Some("re_1")).await;
    assert!(is_unknown(&outcome), "it carries another reference: {outcome:?}");
    let (_, targets) = read(&["{}"], Some("../charges?x=")).await;
    assert_eq!(targets, ["/v1/refunds/..%2Fcharges%3Fx="], "an id never leaves its place in the address");
}

#[tokio::test]
async fn a_known_refund_that_is_gone_is_looked_for_by_reference() {
    let stage = Stage::stripe().await;
    let intent = stage.intent("gone", 5_000);
    let wrong = Intent { psp_refund_ref: Some("re_never".to_owned()), ..intent.clone() };
    assert_eq!(lookup(stage.provider(), &wrong).await, Outcome::Absent);
    create(stage.provider(), &intent).await;
    assert!(matches!(lookup(stage.provider(), &wrong).await, Outcome::Found { .. }));
    let odd = Intent { psp_payment_ref: "in_1".to_owned(), ..intent };
    assert!(is_unknown(&lookup(stage.provider(), &odd).await), "the payment is none of Stripe's");
}
