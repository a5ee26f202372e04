//! Every way to get no whole answer: what is proved not sent is not executed, everything else is unknown.

use super::responder::{Reply, Responder, response};
use super::stages::Stage;
use super::{create, intent_of, is_unknown, lookup, stripe_at, stripe_config};
use jobs::refund::outcome::Outcome;
use orchestrator::psp::stripe::{StripeConfig, StripeConfigError, StripeProvider};
use orchestrator::psp::{CreateCall, LookupCall, Provider};
use psp_mock::{Effect, Fault, How, Match};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// Short, but long for loopback.
const SHORT: Duration = Duration::from_millis(200);

const REFUND: &str = r#"{"id":"re_1","amount":1000,"currency":"eur","status":"succeeded"}"#;

#[tokio::test]
async fn a_refused_connection_is_not_executed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let provider = stripe_at(&url);
    let intent = intent_of(&provider, "r1", 1_000, "EUR");
    for outcome in [create(&provider, &intent).await, lookup(&provider, &intent).await] {
        assert!(matches!(outcome, Outcome::NotExecuted { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_connection_that_never_comes_to_be_is_not_executed() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts, so once the queue is full the next connection gets no answer.
    let mut queued = Vec::new();
    while let Ok(connected) = timeout(SHORT, TcpStream::connect(address)).await {
        queued.push(connected.unwrap());
    }
    let config = StripeConfig { connect_timeout: SHORT, ..stripe_config(&format!("http://{address}")) };
    let provider = StripeProvider::new(config).unwrap();
    let outcome = create(&provider, &intent_of(&provider, "r1", 1_000, "EUR")).await;
    assert!(matches!(outcome, Outcome::NotExecuted { .. }), "{outcome:?}");
}

#[tokio::test]
async fn an_answer_that_stops_short_is_unknown() {
    let whole = String::from_utf8(response(200, "", REFUND)).unwrap();
    let chunked = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{REFUND}\r\n", REFUND.len());
    let long = "x".repeat(1024 * 1024 + 1);
    for reply in [
        Reply::Reset,
        Reply::BytesThenClose(Vec::new()),
        Reply::BytesThenClose(b"HTTP/1.1 200 O".to_vec()),
        Reply::BytesThenClose(b"not http at all\r\n\r\n".to_vec()),
        // The refund is there to the last letter, but the body's end is not.
        Reply::BytesThenClose(chunked.clone().into_bytes()),
        Reply::BytesThenClose(whole.as_bytes()[..whole.len() - 1].to_vec()),
        Reply::BytesThenClose(b"HTTP/1.1 429 Status\r\ncontent-length: 9\r\n\r\nslow".to_vec()),
        Reply::Bytes(response(200, "", &long)),
        Reply::BytesThenClose(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{long}").into_bytes()),
    ] {
        let shown: String = format!("{reply:?}").chars().take(60).collect();
        let responder = Responder::start(vec![reply]).await;
        let provider = stripe_at(&responder.url());
        let outcome = create(&provider, &intent_of(&provider, "r1", 1_000, "EUR")).await;
        assert!(is_unknown(&outcome), "{shown}: {outcome:?}");
        assert_eq!(responder.requests().len(), 1, "{shown}");
    }
}

#[tokio::test]
async fn each_wait_has_its_own_end_and_the_calls_limit_ends_them_all() {
    let body_open = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{{", REFUND.len()).into_bytes();
    let patient = Duration::from_secs(60);
    for (reply, answer_timeout, body_timeout, time_limit, part) in [
        (Vec::new(), SHORT, patient, patient, "no answer within"),
        (body_open.clone(), patient, SHORT, patient, "body not whole within"),
        (Vec::new(), patient, patient, SHORT, "no answer within"),
        (body_open, patient, patient, SHORT, "no answer within"),
    ] {
        let responder = Responder::start(vec![Reply::BytesThenSilence(reply)]).await;
        let config = StripeConfig { answer_timeout, body_timeout, ..stripe_config(&responder.url()) };
        let provider = StripeProvider::new(config).unwrap();
        let intent = intent_of(&provider, "r1", 1_000, "EUR");
        match provider.create(CreateCall { intent: &intent, time_limit }).await {
            Outcome::Unknown { reason } => assert!(reason.contains(part), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_whole_lookup_shares_one_limit() {
    let page = response(200, "", r#"{"has_more":true,"data":[{"id":"re_1"}]}"#);
    let responder = Responder::start(vec![Reply::Bytes(page), Reply::BytesThenSilence(Vec::new())]).await;
    let provider = stripe_at(&responder.url());
    let intent = intent_of(&provider, "r1", 1_000, "EUR");
    let outcome = provider.lookup(LookupCall { intent: &intent, time_limit: SHORT }).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn the_mocks_own_ways_of_silence_are_unknown() {
    for effect in [
        Effect::AnswerLost { how: How::Reset },
        Effect::AnswerLost { how: How::GatewayTimeout },
        Effect::Dropped { how: How::Close },
        Effect::Reset { executed: true },
        Effect::Truncated { bytes: None },
        Effect::Truncated { bytes: Some(0) },
        Effect::ErrorExecuted { status: 503, stored: false },
    ] {
        let stage = Stage::stripe().await;
        let intent = stage.intent("r1", 5_000);
        let Stage::Stripe { provider, mock } = &stage else { unreachable!("a stripe stage") };
        mock.add_fault(Fault::once(Match::default(), effect.clone())).unwrap();
        let outcome = create(&**provider, &intent).await;
        assert!(is_unknown(&outcome), "{effect:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_connection_closed_while_idle_sends_no_call_twice() {
    let refund = response(200, "", REFUND);
    let responder = Responder::start(vec![Reply::BytesThenClose(refund.clone()), Reply::Bytes(refund)]).await;
    let provider = stripe_at(&responder.url());
    let intent = intent_of(&provider, "r1", 1_000, "EUR");
    for _ in 0..2 {
        // Either the closed connection was noticed and a new one opened, or the call is unknown.
        let outcome = create(&provider, &intent).await;
        assert!(is_unknown(&outcome) || matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
    }
    assert!(responder.requests().len() <= 2);
}

#[test]
fn a_configuration_that_can_not_work_is_named() {
    type Check = fn(&StripeConfigError) -> bool;
    let cases: [(&str, &str, Check); 8] = [
        ("", "sk_test_1", |error| matches!(error, StripeConfigError::BaseUrl { .. })),
        ("api.stripe.com", "sk_test_1", |error| matches!(error, StripeConfigError::BaseUrl { .. })),
        ("ftp://api.stripe.com", "sk_test_1", |error| matches!(error, StripeConfigError::BaseUrl { .. })),
        ("https://api.stripe.com?x=1", "sk_test_1", |error| matches!(error, StripeConfigError::BaseUrl { .. })),
        ("https://user@api.stripe.com", "sk_test_1", |error| matches!(error, StripeConfigError::BaseUrl { .. })),
        ("http://api.stripe.com", "sk_live_1", |error| matches!(error, StripeConfigError::LiveKeyInClear { .. })),
        ("https://api.stripe.com", "", |error| matches!(error, StripeConfigError::ApiKey)),
        ("https://api.stripe.com", "sk_test_1\n", |error| matches!(error, StripeConfigError::ApiKey)),
    ];
    for (url, key, fits) in cases {
        let error = StripeProvider::new(StripeConfig::new(url, key.to_owned().into())).expect_err(url);
        assert!(fits(&error), "{url:?} {key:?}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("sk_"), "{error:?}");
    }
    let proxy = Some("::".to_owned());
    let config = StripeConfig { proxy, ..stripe_config("https://api.stripe.com") };
    assert!(matches!(StripeProvider::new(config), Err(StripeConfigError::Proxy(_))));
    let shown = format!("{:?} {:?}", stripe_at("https://api.stripe.com"), stripe_config("https://api.stripe.com"));
    assert!(!shown.contains("sk_test"), "{shown}");
}
