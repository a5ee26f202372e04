//! Every fault: what its caller sees, what was executed, and what a second try under the same key gets.

use crate::support::Psp;
use psp_mock::{CallKind, Config, Effect, Executes, Fault, FaultRate, How, Match};
use std::time::Duration;

/// What the caller of one create sees.
async fn try_refund(psp: &Psp, intent: &str) -> String {
    match psp.refund("pi_a", intent).await {
        Ok(answer) if answer.json.is_null() => "unreadable".to_owned(),
        Ok(answer) => answer.brief(),
        Err(_) => "no answer".to_owned(),
    }
}

#[tokio::test]
async fn each_fault_of_a_create_executes_or_not_as_it_says() {
    let hang = Duration::from_millis(300);
    // effect, first answer, executed then, second answer, executed at last
    let cases = [
        (Effect::AnswerLost { how: How::Close }, "no answer", 1, "200 succeeded", 1),
        (Effect::AnswerLost { how: How::Reset }, "no answer", 1, "200 succeeded", 1),
        (Effect::AnswerLost { how: How::Hang }, "gave up", 1, "200 succeeded", 1),
        (Effect::AnswerLost { how: How::GatewayTimeout }, "504 api_error", 1, "200 succeeded", 1),
        (Effect::Dropped { how: How::Close }, "no answer", 0, "200 succeeded", 1),
        (Effect::Dropped { how: How::Hang }, "gave up", 0, "200 succeeded", 1),
        (Effect::Reset { executed: false }, "no answer", 0, "200 succeeded", 1),
        (Effect::Reset { executed: true }, "no answer", 1, "200 succeeded", 1),
        (Effect::Truncated { bytes: None }, "no answer", 1, "200 succeeded", 1),
        (Effect::Truncated { bytes: Some(0) }, "no answer", 1, "200 succeeded", 1),
        (Effect::ErrorExecuted { status: 500, stored: true }, "500 api_error", 1, "500 api_error", 1),
        (Effect::ErrorExecuted { status: 502, stored: false }, "502 api_error", 1, "200 succeeded", 1),
        (Effect::ErrorNotExecuted { status: 503, stored: false }, "503 api_error", 0, "200 succeeded", 1),
        (Effect::ErrorNotExecuted { status: 500, stored: true }, "500 api_error", 0, "500 api_error", 0),
        (Effect::RateLimited { retry_after_s: None }, "429 invalid_request_error rate_limit", 0, "200 succeeded", 1),
        (
            refuse("charge_not_refundable"),
            "400 invalid_request_error charge_not_refundable",
            0,
            "400 invalid_request_error charge_not_refundable",
            0,
        ),
        (
            refuse("balance_insufficient"),
            "400 invalid_request_error balance_insufficient",
            0,
            "400 invalid_request_error balance_insufficient",
            0,
        ),
        (Effect::LateSuccess { after_ms: 60_000 }, "200 pending", 1, "200 pending", 1),
    ];
    let psp = Psp::start().await;
    psp.payment("a", 1_000_000, "eur");
    for (number, (effect, first, executed, second, executed_at_last)) in cases.into_iter().enumerate() {
        let (intent, shown) = (format!("rf_{number}"), format!("{effect:?}"));
        psp.fault(Match::intent(&intent), effect);
        let answer =
            tokio::time::timeout(if first == "gave up" { hang } else { hang * 60 }, try_refund(&psp, &intent)).await;
        assert_eq!(answer.unwrap_or_else(|_| "gave up".to_owned()), first, "{shown}");
        assert_eq!(psp.executed(&intent), executed, "{shown}");
        assert_eq!(try_refund(&psp, &intent).await, second, "{shown}");
        assert_eq!(psp.executed(&intent), executed_at_last, "{shown}");
    }
}

fn refuse(code: &str) -> Effect {
    Effect::Refuse { code: code.to_owned(), status: 400, message: None, param: None }
}

#[tokio::test]
async fn a_rate_limit_tells_when_to_come_back_only_if_scripted() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    for (retry_after_s, header) in [(None, ""), (Some(7), "7")] {
        psp.fault(Match::default(), Effect::RateLimited { retry_after_s });
        assert_eq!(psp.refund("pi_a", "rf").await.expect("is answered").header("retry-after"), header);
    }
}

#[tokio::test]
async fn a_slow_call_executes_first_or_last_whether_or_not_its_caller_waits() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    for executes in [Executes::First, Executes::Last] {
        let intent = format!("rf_{executes:?}");
        psp.fault(Match::intent(&intent), Effect::Latency { ms: 1_500, executes });
        let received = psp.mock.totals().creates_received;
        {
            let call = psp.refund("pi_a", &intent);
            let arrived = async {
                while psp.mock.totals().creates_received == received
                    || (executes == Executes::First && psp.executed(&intent) == 0)
                {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                answer = call => panic!("{intent}: answered at once: {answer:?}"),
                () = arrived => {}
            }
            // Its caller gives up here.
        }
        assert_eq!(psp.executed(&intent), u32::from(executes == Executes::First), "{intent}");
        while psp.executed(&intent) == 0 {
            tokio::task::yield_now().await;
        }
    }
    psp.fault(Match::default(), Effect::Latency { ms: 50, executes: Executes::Last });
    assert_eq!(try_refund(&psp, "rf_patient").await, "200 succeeded");
    assert!(psp.mock.totals().slowest_call_ms >= 50);
}

#[tokio::test]
async fn a_create_executes_long_after_its_caller_was_told_nothing() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    psp.fault(Match::intent("rf_1"), Effect::ExecutesLate { after_ms: 60_000, how: How::GatewayTimeout });
    assert_eq!(try_refund(&psp, "rf_1").await, "504 api_error");
    psp.mock.advance(Duration::from_secs(50));
    assert_eq!(psp.executed("rf_1"), 0);
    psp.mock.advance(Duration::from_secs(11));
    assert_eq!(psp.executed("rf_1"), 1);
    assert_eq!(try_refund(&psp, "rf_1").await, "200 succeeded");
    assert_eq!(psp.executed("rf_1"), 1);
}

#[tokio::test]
async fn a_refund_changes_after_its_answer_as_scripted() {
    let funds = |succeeds_after_ms, fails_after_ms| Effect::InsufficientFunds { succeeds_after_ms, fails_after_ms };
    let lost = || "lost_or_stolen_card".to_owned();
    // effect, status at first, status after a minute, its reason, movements of money
    let cases = [
        (Effect::LateSuccess { after_ms: 30_000 }, "pending", "succeeded", "", 1),
        (Effect::FailsLater { after_ms: 30_000, reason: lost() }, "succeeded", "failed", "lost_or_stolen_card", 2),
        (funds(Some(30_000), None), "pending", "succeeded", "", 1),
        (funds(None, Some(30_000)), "pending", "failed", "insufficient_funds", 0),
        (funds(None, None), "pending", "pending", "", 0),
        (Effect::RequiresAction { succeeds_after_ms: Some(30_000) }, "requires_action", "succeeded", "", 1),
        (Effect::RequiresAction { succeeds_after_ms: None }, "requires_action", "requires_action", "", 0),
    ];
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    for (effect, first, last, reason, movements) in cases {
        let shown = format!("{effect:?}");
        psp.fault(Match::default(), effect);
        let made = psp.post("/v1/refunds", "payment_intent=pi_a&amount=100", None).await;
        assert_eq!(made.text("/status"), first, "{shown}");
        psp.mock.advance(Duration::from_secs(60));
        let now = psp.get(&format!("/v1/refunds/{}", made.text("/id"))).await;
        assert_eq!((now.text("/status"), now.text("/failure_reason")), (last, reason), "{shown}");
        let booked = psp.get(&format!("/v1/balance_transactions?source={}", made.text("/id"))).await;
        assert_eq!(booked.json["data"].as_array().map(Vec::len), Some(movements), "{shown}");
    }
}

#[tokio::test]
async fn a_lagging_list_hides_what_a_read_by_id_shows() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    psp.fault(Match::default(), Effect::ListLag { ms: 30_000 });
    let made = psp.refund("pi_a", "rf_1").await.expect("is answered");
    assert_eq!(psp.get(&format!("/v1/refunds/{}", made.text("/id"))).await.status, 200);
    for (forward_s, listed) in [(0, 0), (29, 0), (2, 1)] {
        psp.mock.advance(Duration::from_secs(forward_s));
        for query in ["payment_intent=pi_a", "limit=100"] {
            let list = psp.get(&format!("/v1/refunds?{query}")).await;
            assert_eq!(list.json["data"].as_array().map(Vec::len), Some(listed), "{query}");
        }
    }
}

#[tokio::test]
async fn a_wrong_answer_is_wrong_in_the_book_too_unless_only_the_answer_is() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    for (answer_only, amount, currency) in [(false, 77, "usd"), (true, 100, "eur")] {
        psp.fault(
            Match::default(),
            Effect::WrongAnswer { amount: Some(77), currency: Some("USD".to_owned()), answer_only },
        );
        let made = psp.post("/v1/refunds", "payment_intent=pi_a&amount=100", None).await;
        assert_eq!((&made.json["amount"], made.text("/currency")), (&77.into(), "usd"));
        let read = psp.get(&format!("/v1/refunds/{}", made.text("/id"))).await;
        assert_eq!((&read.json["amount"], read.text("/currency")), (&amount.into(), currency), "{answer_only}");
    }
}

#[tokio::test]
async fn a_fault_hits_the_calls_it_matches_and_no_others() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    psp.payment("b", 1000, "jpy");
    let made = psp.refund("pi_a", "rf_made").await.expect("is answered");
    let (read, list) = (format!("/v1/refunds/{}", made.text("/id")), "/v1/refunds?payment_intent=pi_b");
    let on = |call| Match { call, ..Match::default() };
    // match, creates of a and b, read, list
    let cases = [
        (Match::default(), [503, 503, 200, 200]),
        (on(CallKind::Retrieve), [200, 200, 503, 200]),
        (on(CallKind::List), [200, 200, 200, 503]),
        (on(CallKind::Any), [503, 503, 503, 503]),
        (Match { payment: Some("ch_b".into()), ..Match::default() }, [200, 503, 200, 200]),
        (Match { payment: Some("pi_b".into()), ..on(CallKind::Any) }, [200, 503, 200, 503]),
        (Match { currency: Some("JPY".into()), ..Match::default() }, [200, 503, 200, 200]),
        (Match { intent: Some("rf_a".into()), ..Match::default() }, [503, 200, 200, 200]),
        (Match { intent: Some("rf_made".into()), ..on(CallKind::Any) }, [200, 200, 503, 200]),
        (Match { nth: Some(2), ..Match::default() }, [200, 503, 200, 200]),
    ];
    for (matches, expected) in cases {
        let shown = format!("{matches:?}");
        let effects = vec![Effect::ErrorNotExecuted { status: 503, stored: false }];
        psp.mock.add_fault(Fault { matches, count: 0, effects }).expect("fault is taken");
        let create = |payment: &str, intent: &str| format!("{payment}&amount=1&metadata[intent_id]={intent}");
        let seen = [
            psp.post("/v1/refunds", &create("payment_intent=pi_a", "rf_a"), None).await.status,
            psp.post("/v1/refunds", &create("charge=ch_b", "rf_b"), None).await.status,
            psp.get(&read).await.status,
            psp.get(list).await.status,
        ];
        assert_eq!(seen, expected, "{shown}");
        psp.mock.clear_faults();
    }
}

#[tokio::test]
async fn faults_are_used_up_in_order_and_their_effects_add_up() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    psp.fault(Match::intent("rf_1"), Effect::RateLimited { retry_after_s: None });
    let slow_and_lost = vec![Effect::LateSuccess { after_ms: 1 }, Effect::AnswerLost { how: How::Close }];
    psp.mock.add_fault(Fault { matches: Match::default(), count: 2, effects: slow_and_lost }).expect("fault is taken");
    let mut seen = Vec::new();
    for intent in ["rf_1", "rf_1", "rf_1", "rf_2", "rf_3"] {
        seen.push(try_refund(&psp, intent).await);
    }
    // The third call repeats a stored result, so the effects on execution wait for the fourth.
    assert_eq!(
        seen,
        ["429 invalid_request_error rate_limit", "no answer", "200 pending", "no answer", "200 succeeded"]
    );
}

#[tokio::test]
async fn the_same_seed_draws_the_same_faults_for_the_same_intents() {
    let rate = FaultRate { effect: Effect::RateLimited { retry_after_s: None }, per_million: 300_000 };
    let mut runs = Vec::new();
    for (seed, backwards) in [(5, false), (5, true), (6, false)] {
        let psp = Psp::with(Config { seed, fault_rates: vec![rate.clone()], ..Config::default() }).await;
        psp.payment("a", 1_000_000, "eur");
        let mut order: Vec<usize> = (0..60).collect();
        if backwards {
            order.reverse();
        }
        let mut hit = vec![false; order.len()];
        for number in order {
            hit[number] = try_refund(&psp, &format!("rf_{number}")).await.starts_with("429");
        }
        runs.push(hit);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    let hits = runs[0].iter().filter(|hit| **hit).count();
    assert!((5..=35).contains(&hits), "{hits} of 60");
}
