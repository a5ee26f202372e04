//! Sentences that hold for every provider.

use super::stages::{KEY_LIFETIME, LookupMishap, Mishap, Stage};
use super::{create, is_unknown, lookup};
use jobs::refund::intent::Intent;
use jobs::refund::outcome::{Outcome, PspRefund, RejectionClass};
use jobs::refund::state::PspStatus;
use orchestrator::psp::{CreateCall, Provider};
use std::time::Duration;

/// Runs a scenario on both stages.
async fn check<F: AsyncFn(&Stage)>(scenario: F) {
    for stage in [Stage::memory(), Stage::stripe().await] {
        scenario(&stage).await;
    }
}

fn accepted(outcome: Outcome) -> PspRefund {
    match outcome {
        Outcome::Accepted { refund } => refund,
        other => panic!("not accepted: {other:?}"),
    }
}

fn found(outcome: Outcome) -> Vec<PspRefund> {
    match outcome {
        Outcome::Found { refunds } => refunds,
        other => panic!("not found: {other:?}"),
    }
}

fn rejected(outcome: Outcome) -> (String, RejectionClass, bool) {
    match outcome {
        Outcome::Rejected { rejection } => (rejection.code, rejection.class, rejection.stored_under_key),
        other => panic!("not rejected: {other:?}"),
    }
}

async fn impatient_create(provider: &dyn Provider, intent: &Intent) -> Outcome {
    provider.create(CreateCall { intent, time_limit: Duration::from_millis(150) }).await
}

#[tokio::test]
async fn a_create_makes_one_refund_that_lookups_find() {
    check(async |stage: &Stage| {
        let mut intent = stage.intent("plain", 5_000);
        assert_eq!(lookup(stage.provider(), &intent).await, Outcome::Absent);
        let made = accepted(create(stage.provider(), &intent).await);
        assert_eq!((made.status, made.amount, &made.reason), (PspStatus::Succeeded, intent.amount, &None));
        assert_eq!(found(lookup(stage.provider(), &intent).await), std::slice::from_ref(&made));
        intent.psp_refund_ref = Some(made.psp_refund_ref.clone());
        assert_eq!(found(lookup(stage.provider(), &intent).await), [made]);
    })
    .await;
}

#[tokio::test]
async fn a_repeat_under_the_key_makes_no_second_refund() {
    check(async |stage: &Stage| {
        let intent = stage.intent("repeat", 5_000);
        let first = create(stage.provider(), &intent).await;
        assert_eq!(create(stage.provider(), &intent).await, first);
        assert_eq!(stage.executed(&intent), 1);
    })
    .await;
}

#[tokio::test]
async fn a_key_that_is_forgotten_runs_as_new() {
    check(async |stage: &Stage| {
        let intent = stage.intent("forgotten", 5_000);
        let first = accepted(create(stage.provider(), &intent).await);
        stage.advance(KEY_LIFETIME + Duration::from_secs(1));
        let second = accepted(create(stage.provider(), &intent).await);
        let hits = found(lookup(stage.provider(), &intent).await);
        assert_eq!((hits.len(), stage.executed(&intent)), (2, 2));
        assert!(hits.contains(&first) && hits.contains(&second));
    })
    .await;
}

#[tokio::test]
async fn another_body_under_the_key_is_refused() {
    check(async |stage: &Stage| {
        let intent = stage.intent("other_body", 5_000);
        accepted(create(stage.provider(), &intent).await);
        let other = stage.intent("other", 5_000);
        let reused = Intent { create_body: other.create_body, ..intent.clone() };
        let (_, class, stored) = rejected(create(stage.provider(), &reused).await);
        assert_eq!((class, stored), (RejectionClass::KeyReused, false));
        assert_eq!(stage.executed(&intent), 1);
    })
    .await;
}

#[tokio::test]
async fn an_unanswered_create_is_unknown_and_lookup_tells_whether_it_executed() {
    for (mishap, executed) in [
        (Mishap::AnswerLost, true),
        (Mishap::Dropped, false),
        (Mishap::Hangs, true),
        (Mishap::StoredErrorExecuted, true),
        (Mishap::StoredErrorNotExecuted, false),
    ] {
        check(async |stage: &Stage| {
            let intent = stage.intent("unanswered", 5_000);
            stage.script(&intent, mishap);
            let outcome = match mishap {
                Mishap::Hangs => impatient_create(stage.provider(), &intent).await,
                _ => create(stage.provider(), &intent).await,
            };
            assert!(is_unknown(&outcome), "{mishap:?}: {outcome:?}");
            assert_eq!(stage.executed(&intent), u64::from(executed), "{mishap:?}");
            match lookup(stage.provider(), &intent).await {
                Outcome::Absent => assert!(!executed, "{mishap:?}"),
                other => assert_eq!((found(other).len(), executed), (1, true), "{mishap:?}"),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_stored_error_is_repeated_whatever_came_of_the_create() {
    for mishap in [Mishap::StoredErrorExecuted, Mishap::StoredErrorNotExecuted] {
        check(async |stage: &Stage| {
            let intent = stage.intent("frozen", 5_000);
            stage.script(&intent, mishap);
            assert!(is_unknown(&create(stage.provider(), &intent).await));
            let before = stage.executed(&intent);
            assert!(is_unknown(&create(stage.provider(), &intent).await));
            assert_eq!(stage.executed(&intent), before, "{mishap:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_create_that_was_dropped_may_be_sent_again() {
    check(async |stage: &Stage| {
        let intent = stage.intent("again", 5_000);
        stage.script(&intent, Mishap::Dropped);
        assert!(is_unknown(&create(stage.provider(), &intent).await));
        accepted(create(stage.provider(), &intent).await);
        assert_eq!(stage.executed(&intent), 1);
    })
    .await;
}

#[tokio::test]
async fn a_create_executes_late_and_the_key_still_holds() {
    check(async |stage: &Stage| {
        let intent = stage.intent("late", 5_000);
        stage.script(&intent, Mishap::ExecutesLate(Duration::from_secs(120)));
        assert!(is_unknown(&create(stage.provider(), &intent).await));
        assert_eq!(lookup(stage.provider(), &intent).await, Outcome::Absent);
        assert!(is_unknown(&create(stage.provider(), &intent).await), "the first one is in flight");
        stage.advance(Duration::from_secs(121));
        let hits = found(lookup(stage.provider(), &intent).await);
        assert_eq!(vec![accepted(create(stage.provider(), &intent).await)], hits);
        assert_eq!(stage.executed(&intent), 1);
    })
    .await;
}

#[tokio::test]
async fn a_lookup_may_lag_behind_the_create() {
    check(async |stage: &Stage| {
        let intent = stage.intent("lag", 5_000);
        stage.script(&intent, Mishap::HiddenFor(Duration::from_secs(30)));
        create(stage.provider(), &intent).await;
        assert_eq!(lookup(stage.provider(), &intent).await, Outcome::Absent);
        stage.advance(Duration::from_secs(31));
        assert_eq!(found(lookup(stage.provider(), &intent).await).len(), 1);
    })
    .await;
}

#[tokio::test]
async fn too_many_requests_means_not_executed_with_the_wait_asked_for() {
    check(async |stage: &Stage| {
        let intent = stage.intent("limited", 5_000);
        stage.script(&intent, Mishap::RateLimited { retry_after_s: 7 });
        let outcome = create(stage.provider(), &intent).await;
        assert!(matches!(outcome, Outcome::NotExecuted { retry_after_ms: Some(7_000), .. }), "{outcome:?}");
        assert_eq!(stage.executed(&intent), 0);
        accepted(create(stage.provider(), &intent).await);
    })
    .await;
}

#[tokio::test]
async fn a_pending_refund_says_why() {
    check(async |stage: &Stage| {
        let intent = stage.intent("pending", 5_000);
        stage.script(&intent, Mishap::Pending);
        let made = accepted(create(stage.provider(), &intent).await);
        assert_eq!((made.status, made.reason.as_deref()), (PspStatus::Processing, Some("insufficient_funds")));
    })
    .await;
}

#[tokio::test]
async fn a_refusal_is_final_and_stored_when_it_began_to_execute() {
    check(async |stage: &Stage| {
        let intent = stage.intent("refused", 5_000);
        stage.script(&intent, Mishap::Disputed);
        let expected = ("charge_disputed".to_owned(), RejectionClass::Final, true);
        assert_eq!(rejected(create(stage.provider(), &intent).await), expected);
        assert_eq!(rejected(create(stage.provider(), &intent).await), expected, "repeated under the key");
        assert_eq!(stage.executed(&intent), 0);
    })
    .await;
}

#[tokio::test]
async fn a_used_up_payment_says_so() {
    check(async |stage: &Stage| {
        let first = stage.intent("used_up", 1_000);
        accepted(create(stage.provider(), &first).await);
        let next = Intent { idempotency_key: "another-key".to_owned(), ..first.clone() };
        let (code, class, stored) = rejected(create(stage.provider(), &next).await);
        assert_eq!((code.as_str(), class, stored), ("charge_already_refunded", RejectionClass::AlreadyRefunded, true));
    })
    .await;
}

#[tokio::test]
async fn a_reading_that_breaks_off_proves_nothing() {
    check(async |stage: &Stage| {
        let intent = stage.intent("broken", 5_000);
        stage.script_lookup(&intent, LookupMishap::BreaksOff);
        let outcome = lookup(stage.provider(), &intent).await;
        assert!(is_unknown(&outcome), "{outcome:?}");
        stage.script_lookup(&intent, LookupMishap::RateLimited);
        let outcome = lookup(stage.provider(), &intent).await;
        assert!(matches!(outcome, Outcome::NotExecuted { retry_after_ms: Some(2_000), .. }), "{outcome:?}");
        assert_eq!(lookup(stage.provider(), &intent).await, Outcome::Absent);
    })
    .await;
}

#[tokio::test]
async fn refunds_of_other_intents_and_accounts_are_not_ours() {
    check(async |stage: &Stage| {
        let intent = stage.intent("mine", 5_000);
        accepted(create(stage.provider(), &intent).await);
        let elsewhere = Intent { psp_account: "acct_2".to_owned(), ..intent.clone() };
        assert!(!matches!(lookup(stage.provider(), &elsewhere).await, Outcome::Found { .. }));
        let other = stage.intent("theirs", 5_000);
        let same_payment = Intent { psp_payment_ref: intent.psp_payment_ref.clone(), ..other };
        assert_eq!(lookup(stage.provider(), &same_payment).await, Outcome::Absent);
    })
    .await;
}
