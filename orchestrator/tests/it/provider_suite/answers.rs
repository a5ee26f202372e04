//! Every answer to a create, as a table: status, headers, body, and what it means.

use super::responder::{Reply, Responder, response};
use super::{create, intent_of, refund, stripe_at};
use jobs::refund::outcome::{Outcome, Rejection, RejectionClass};
use jobs::refund::state::PspStatus;

/// What an answer is expected to mean.
enum Means {
    Accepted(&'static str, PspStatus, i64, &'static str, Option<&'static str>),
    /// Code, class, stored under the key.
    Rejected(&'static str, RejectionClass, bool),
    NotExecuted(Option<u64>),
    Unknown,
}

async fn check(currency: &str, answers: &[(u16, &str, &str, Means)]) {
    let replies = answers.iter().map(|(status, headers, body, _)| Reply::Bytes(response(*status, headers, body)));
    let responder = Responder::start(replies.collect()).await;
    let provider = stripe_at(&responder.url());
    for (status, headers, body, means) in answers {
        let outcome = create(&provider, &intent_of(&provider, "r1", 1_000, currency)).await;
        let fits = match (means, &outcome) {
            (Means::Accepted(id, status, minor, currency, reason), Outcome::Accepted { refund: shown }) => {
                *shown == refund(id, *status, *minor, currency, *reason)
            }
            (
                Means::Rejected(code, class, stored),
                Outcome::Rejected { rejection: Rejection { code: shown, stored_under_key, class: shown_class, .. } },
            ) => (shown.as_str(), shown_class, stored_under_key) == (*code, class, stored),
            (Means::NotExecuted(wait), Outcome::NotExecuted { retry_after_ms, .. }) => retry_after_ms == wait,
            (Means::Unknown, Outcome::Unknown { .. }) => true,
            _ => false,
        };
        assert!(fits, "{status} {headers:?} {body} came out as {outcome:?}");
    }
}

#[tokio::test]
async fn a_refund_shown_is_accepted_with_its_status_and_amount() {
    use Means::{Accepted, Unknown};
    use PspStatus::{Canceled, Failed, Processing, Succeeded};
    check(
        "EUR",
        &[
            (200, "", r#"{"id":"re_1","object":"refund","amount":1000,"currency":"eur","status":"succeeded","metadata":{"intent_id":"r1","x":"y"},"pending_reason":null}"#, Accepted("re_1", Succeeded, 1_000, "EUR", None)),
            (200, "", r#"{"id":"re_1","amount":1000,"currency":"EUR","status":"pending","pending_reason":"insufficient_funds"}"#, Accepted("re_1", Processing, 1_000, "EUR", Some("insufficient_funds"))),
            (200, "", r#"{"id":"re_1","amount":1000,"currency":"eur","status":"requires_action"}"#, Accepted("re_1", Processing, 1_000, "EUR", None)),
            (200, "", r#"{"id":"re_1","amount":1000,"currency":"eur","status":"failed","failure_reason":"lost_or_stolen_card"}"#, Accepted("re_1", Failed, 1_000, "EUR", Some("lost_or_stolen_card"))),
            (200, "", r#"{"id":"re_1","amount":1000,"currency":"eur","status":"canceled","failure_reason":"with \"quotes\""}"#, Accepted("re_1", Canceled, 1_000, "EUR", Some("with \"quotes\""))),
            // Another amount or currency than asked for is shown as it is: the rules stop on it.
            (200, "", r#"{"id":"re_1","amount":100000,"currency":"eur","status":"succeeded"}"#, Accepted("re_1", Succeeded, 100_000, "EUR", None)),
            (200, "", r#"{"id":"re_1","amount":1000,"currency":"jpy","status":"succeeded"}"#, Accepted("re_1", Succeeded, 1_000, "JPY", None)),
            (200, "", r#"{"id":"re_1","amount":500,"currency":"ugx","status":"succeeded"}"#, Accepted("re_1", Succeeded, 5, "UGX", None)),
            (200, "", r#"{"id":"re_1","amount":501,"currency":"ugx","status":"succeeded"}"#, Unknown),
            (200, "", r#"{"id":"re_1","amount":123,"currency":"mga","status":"succeeded"}"#, Accepted("re_1", Succeeded, 12_300, "MGA", None)),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_body_that_can_not_be_read_is_unknown() {
    let missing = |field: &str| {
        let all = [("id", r#""re_1""#), ("amount", "1000"), ("currency", r#""eur""#), ("status", r#""succeeded""#)];
        let kept: Vec<String> =
            all.iter().filter(|(name, _)| *name != field).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", kept.join(","))
    };
    let bodies = ["id", "amount", "currency", "status"].map(missing);
    let mut answers: Vec<_> = bodies.iter().map(|body| (200, "", body.as_str(), Means::Unknown)).collect();
    for body in [
        "",
        "{}",
        "[]",
        "<html>login</html>",
        r#"{"id":"re_1","amount":1000,"currency":"eur","status":"succ"#,
        r#"{"id":"re_1","amount":1000,"currency":"eur","status":"lost"}"#,
        r#"{"id":"re_1","amount":1000,"currency":"eur","status":null}"#,
        r#"{"id":"re_1","amount":1000,"currency":"zzz","status":"succeeded"}"#,
        r#"{"id":"re_1","amount":10.5,"currency":"eur","status":"succeeded"}"#,
        r#"{"id":"re_1","amount":"1000","currency":"eur","status":"succeeded"}"#,
        r#"{"id":"re_1","amount":99999999999999999999,"currency":"eur","status":"succeeded"}"#,
        r#"{"id":"","amount":1000,"currency":"eur","status":"succeeded"}"#,
        r#"{"id":"re 1","amount":1000,"currency":"eur","status":"succeeded"}"#,
        r#"{"id":"re_1","amount":1000,"currency":"eur","status":"succeeded","metadata":{"intent_id":"r2"}}"#,
    ] {
        answers.push((200, "", body, Means::Unknown));
    }
    check("EUR", &answers).await;
}

#[tokio::test]
async fn a_refusal_carries_its_code_its_class_and_whether_the_key_repeats_it() {
    use RejectionClass::{AlreadyRefunded, Final, KeyReused};
    let (invalid, card, replayed) = ("invalid_request_error", "card_error", "idempotent-replayed: true\r\n");
    let table = [
        (400, "", invalid, "charge_already_refunded", AlreadyRefunded, true),
        (400, "", invalid, "charge_disputed", Final, true),
        (400, "", invalid, "refund_disputed_payment", Final, true),
        (400, "", invalid, "charge_not_refundable", Final, true),
        (402, "", card, "balance_insufficient", Final, true),
        (404, "", invalid, "resource_missing", Final, false),
        (400, "", invalid, "parameter_invalid_integer", Final, false),
        (400, "", invalid, "charge_made_up", Final, false),
        (400, "", invalid, "", Final, false),
        (400, replayed, invalid, "", Final, true),
        (400, "", "idempotency_error", "", KeyReused, false),
        (400, replayed, "idempotency_error", "", KeyReused, false),
    ];
    let bodies = table.map(|(_, _, kind, code, ..)| match code {
        "" => format!(r#"{{"error":{{"type":"{kind}","message":"too much","param":"amount"}}}}"#),
        code => format!(r#"{{"error":{{"type":"{kind}","code":"{code}","message":"m"}}}}"#),
    });
    let answers = table.iter().zip(&bodies).map(|((status, headers, kind, code, class, stored), body)| {
        let code = if code.is_empty() { kind } else { code };
        (*status, *headers, body.as_str(), Means::Rejected(code, *class, *stored))
    });
    check("EUR", &answers.collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn what_stripe_did_not_start_on_is_not_executed() {
    use Means::NotExecuted;
    let limited = r#"{"error":{"type":"invalid_request_error","code":"rate_limit"}}"#;
    let dates = "date: Tue, 01 Dec 2026 10:00:00 GMT\r\nretry-after: Tue, 01 Dec 2026 10:00:05 GMT\r\n";
    check(
        "EUR",
        &[
            (429, "", limited, NotExecuted(None)),
            (429, "retry-after: 3\r\n", limited, NotExecuted(Some(3_000))),
            (429, dates, limited, NotExecuted(Some(5_000))),
            (429, "retry-after: 9999999\r\n", "slow down", NotExecuted(Some(3_600_000))),
            (401, "", r#"{"error":{"type":"invalid_request_error","message":"Invalid API Key"}}"#, NotExecuted(None)),
            (403, "", r#"{"error":{"type":"invalid_request_error","code":"permission"}}"#, NotExecuted(None)),
            (403, "", "<html>blocked</html>", NotExecuted(None)),
            (
                404,
                "",
                r#"{"error":{"type":"invalid_request_error","message":"Unrecognized request URL"}}"#,
                NotExecuted(None),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn whatever_else_comes_is_unknown() {
    use Means::Unknown;
    let error = r#"{"error":{"type":"api_error","message":"unknown error"}}"#;
    let in_use = r#"{"error":{"type":"idempotency_error","code":"idempotency_key_in_use"}}"#;
    let locked = r#"{"error":{"type":"invalid_request_error","code":"lock_timeout"}}"#;
    let refund = r#"{"id":"re_1","amount":1000,"currency":"eur","status":"succeeded"}"#;
    check(
        "EUR",
        &[
            (500, "", error, Unknown),
            (500, "idempotent-replayed: true\r\n", error, Unknown),
            (502, "", "<html>bad gateway</html>", Unknown),
            (503, "retry-after: 3\r\n", error, Unknown),
            (504, "", "", Unknown),
            (409, "", in_use, Unknown),
            (409, "", "", Unknown),
            (409, "", r#"{"error":{"type":"idempotency_error"}}"#, Unknown),
            (400, "", in_use, Unknown),
            (429, "", locked, Unknown),
            (400, "", locked, Unknown),
            (400, "", r#"{"error":{"type":"api_error"}}"#, Unknown),
            (400, "", "bad request", Unknown),
            (404, "", "not found", Unknown),
            (405, "", r#"{"error":{"type":"invalid_request_error"}}"#, Unknown),
            (407, "", "", Unknown),
            (408, "", error, Unknown),
            (418, "", "", Unknown),
            (301, "location: http://127.0.0.1:1/\r\n", "", Unknown),
            (307, "location: /v1/refunds\r\n", "", Unknown),
            (201, "", refund, Unknown),
            (202, "", refund, Unknown),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_create_sends_the_stored_bytes_under_the_stored_key_once() {
    let replies = vec![Reply::Bytes(response(500, "", "")), Reply::Bytes(response(500, "", ""))];
    let responder = Responder::start(replies).await;
    let provider = stripe_at(&format!("{}/", responder.url()));
    let mut intent = intent_of(&provider, "r1", 1_000, "EUR");
    intent.create_body = b"stored=bytes&amount=7".to_vec();
    intent.idempotency_key = "stored-key".to_owned();
    create(&provider, &intent).await;
    intent.psp_account = "main".to_owned();
    create(&provider, &intent).await;
    let requests = responder.requests();
    assert_eq!(requests.len(), 2, "nothing is retried");
    for (request, account) in requests.iter().zip([Some("acct_1"), None]) {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        assert!(head.starts_with("POST /v1/refunds HTTP/1.1\r\n"), "{head}");
        assert_eq!(body, "stored=bytes&amount=7");
        assert_eq!(header("idempotency-key"), Some("stored-key"));
        assert_eq!(header("content-type"), Some("application/x-www-form-urlencoded"));
        assert_eq!(header("authorization"), Some("Bearer sk_test_1"));
        assert_eq!(header("stripe-account"), account);
    }
}

#[tokio::test]
async fn what_no_header_can_carry_is_not_sent() {
    let responder = Responder::start(Vec::new()).await;
    let provider = stripe_at(&responder.url());
    let mut intent = intent_of(&provider, "r1", 1_000, "EUR");
    intent.idempotency_key = "two\r\nlines".to_owned();
    assert!(matches!(create(&provider, &intent).await, Outcome::NotExecuted { .. }));
    assert_eq!(responder.requests(), [""; 0]);
}
