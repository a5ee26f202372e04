//! Events: which are sent, how they are signed, and how their delivery is spoiled.

use crate::support::Psp;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hmac::{Hmac, Mac};
use psp_mock::{CallKind, Config, Effect, Match, Webhook, WebhookFault};
use serde_json::Value;
use sha2::Sha256;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

const SECRET: &str = "whsec_test";

struct Delivery {
    signature: Option<String>,
    body: Bytes,
}

impl Delivery {
    fn kind(&self) -> String {
        let event: Value = serde_json::from_slice(&self.body).expect("is JSON");
        event["type"].as_str().expect("has a type").to_owned()
    }

    /// "signed", "unsigned" or "forged".
    fn seal(&self) -> &'static str {
        let Some(signature) = &self.signature else { return "unsigned" };
        let (time, given) = signature.split_once(",v1=").expect("has both parts");
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length fits");
        mac.update(format!("{}.", time.strip_prefix("t=").expect("has a time")).as_bytes());
        mac.update(&self.body);
        let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        if given == expected { "signed" } else { "forged" }
    }
}

/// An endpoint that refuses its first `refuse` deliveries; what it took comes out of the channel.
async fn endpoint(refuse: u32) -> (String, mpsc::Receiver<Delivery>) {
    let (taken, deliveries) = mpsc::channel(100);
    let left = Arc::new(AtomicU32::new(refuse));
    let receive = |State((taken, left)): State<(mpsc::Sender<Delivery>, Arc<AtomicU32>)>,
                   headers: HeaderMap,
                   body: Bytes| async move {
        if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return StatusCode::INTERNAL_SERVER_ERROR;
        }
        let signature = headers.get("stripe-signature").and_then(|value| value.to_str().ok()).map(str::to_owned);
        taken.send(Delivery { signature, body }).await.expect("test still listens");
        StatusCode::OK
    };
    let app = Router::new().route("/hook", post(receive)).with_state((taken, left));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("port is free");
    let url = format!("http://{}/hook", listener.local_addr().expect("is bound"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, deliveries)
}

async fn psp_with(url: String) -> Psp {
    let webhook = Some(Webhook { url, secret: SECRET.to_owned() });
    let webhook_retries = vec![Duration::from_millis(1); 3];
    let psp = Psp::with(Config { webhook, webhook_retries, ..Config::default() }).await;
    psp.payment("a", 1000, "eur");
    psp
}

async fn next(deliveries: &mut mpsc::Receiver<Delivery>) -> Delivery {
    tokio::time::timeout(Duration::from_secs(10), deliveries.recv())
        .await
        .expect("event comes")
        .expect("endpoint lives")
}

#[tokio::test]
async fn a_refund_that_fails_later_is_told_event_by_event_with_stripes_signature() {
    let (url, mut deliveries) = endpoint(0).await;
    let psp = psp_with(url).await;
    psp.fault(Match::default(), Effect::FailsLater { after_ms: 5_000, reason: "declined".to_owned() });
    let made = psp.refund("pi_a", "rf_1").await.expect("is answered");
    psp.mock.advance(Duration::from_secs(6));
    let (mut kinds, mut last) = (Vec::new(), None);
    for _ in 0..4 {
        let delivery = next(&mut deliveries).await;
        assert_eq!(delivery.seal(), "signed");
        kinds.push(delivery.kind());
        last = Some(delivery);
    }
    // The two changes go out side by side: order holds within a change.
    let position = |kind: &str| kinds.iter().position(|k| k == kind).expect("came");
    assert!(position("refund.created") < position("charge.refunded"));
    assert!(position("refund.updated") < position("refund.failed"));
    let event: Value = serde_json::from_slice(&last.expect("came").body).expect("is JSON");
    assert_eq!(event["object"], "event");
    let object = &event["data"]["object"];
    assert!(object["id"] == made.json["id"] || object["id"] == made.json["charge"], "{event}");
}

#[tokio::test]
async fn an_event_that_is_not_taken_is_sent_again_a_few_times() {
    for (refuse, delivered, failed) in [(2, 2, 0), (4, 1, 1)] {
        let (url, mut deliveries) = endpoint(refuse).await;
        let psp = psp_with(url).await;
        psp.refund("pi_a", "rf_1").await.expect("is answered");
        for _ in 0..delivered {
            next(&mut deliveries).await;
        }
        while psp.mock.totals().webhooks_delivered < delivered {
            tokio::task::yield_now().await;
        }
        assert_eq!(psp.mock.totals().webhooks_failed, failed, "{refuse} refused");
    }
}

#[tokio::test]
async fn each_webhook_fault_spoils_the_delivery_in_its_own_way() {
    let created = || Match { event: Some("refund.created".to_owned()), ..Match::call(CallKind::Webhook) };
    type Case<'a> = (Match, WebhookFault, &'a [(&'a str, &'a str)]);
    let cases: [Case<'_>; 6] = [
        (
            created(),
            WebhookFault::Duplicate { times: 2 },
            &[("refund.created", "signed"), ("refund.created", "signed"), ("charge.refunded", "signed")],
        ),
        (
            created(),
            WebhookFault::Reordered { hold_ms: 0 },
            &[("charge.refunded", "signed"), ("refund.created", "signed")],
        ),
        (created(), WebhookFault::Unsigned, &[("refund.created", "unsigned"), ("charge.refunded", "signed")]),
        (created(), WebhookFault::Forged, &[("refund.created", "forged"), ("charge.refunded", "signed")]),
        (created(), WebhookFault::Withheld, &[("charge.refunded", "signed")]),
        (
            Match::intent("rf_other"),
            WebhookFault::Withheld,
            &[("refund.created", "signed"), ("charge.refunded", "signed")],
        ),
    ];
    let (url, mut deliveries) = endpoint(0).await;
    let psp = psp_with(url).await;
    for (matches, fault, expected) in cases {
        let shown = format!("{fault:?}");
        psp.fault(matches, Effect::Webhook(fault));
        psp.post("/v1/refunds", "payment_intent=pi_a&amount=10&metadata[intent_id]=rf_1", None).await;
        for (kind, seal) in expected {
            let delivery = next(&mut deliveries).await;
            assert_eq!((delivery.kind().as_str(), delivery.seal()), (*kind, *seal), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_fault_for_any_call_is_not_used_up_by_an_event() {
    let (url, mut deliveries) = endpoint(0).await;
    let psp = psp_with(url).await;
    psp.refund("pi_a", "rf_1").await.expect("is answered");
    let nth = Some(2);
    psp.fault(Match { nth, ..Match::call(CallKind::Any) }, Effect::ErrorNotExecuted { status: 503, stored: false });
    psp.refund("pi_a", "rf_2").await.expect("is answered");
    assert_eq!(next(&mut deliveries).await.kind(), "refund.created");
    assert_eq!(psp.refund("pi_a", "rf_3").await.expect("is answered").status, 503);
}
