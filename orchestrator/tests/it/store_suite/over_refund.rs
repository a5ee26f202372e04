//! No payment is promised out twice: the check of what is left and the reservation are one step.

use super::fixture::{Fixture, change_to, euro, intent_id, money, new_intent, new_payment};
use jobs::refund::state::State;
use orchestrator::store::change::{NewBreak, TransferKind};
use orchestrator::store::submit::SubmitResult;
use std::sync::Arc;

pub(crate) async fn more_than_is_left_is_refused(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let submit = |id, minor| fixture.submit_one(new_intent(id, "p-1", euro(minor)));
    assert_eq!(submit("r-1", 1_001).await, SubmitResult::ExceedsRefundable { refundable_minor: 1_000 });
    assert_eq!(submit("r-1", i64::MAX).await, SubmitResult::ExceedsRefundable { refundable_minor: 1_000 });
    assert!(matches!(submit("r-1", 700).await, SubmitResult::Created(_)));
    assert_eq!(submit("r-2", 301).await, SubmitResult::ExceedsRefundable { refundable_minor: 300 });
    assert!(matches!(submit("r-2", 300).await, SubmitResult::Created(_)));
    assert_eq!(submit("r-3", 1).await, SubmitResult::ExceedsRefundable { refundable_minor: 0 });
    // What was sent back is as gone as what is promised.
    fixture.succeed("r-1", 1).await;
    assert_eq!(submit("r-3", 1).await, SubmitResult::ExceedsRefundable { refundable_minor: 0 });
    // What was refused for good is free again.
    let refused = fixture.row("r-2").await;
    fixture.write(change_to(&refused, fixture.token(1), State::Failed, refused.updated_at)).await;
    assert!(matches!(submit("r-3", 300).await, SubmitResult::Created(_)));
}

pub(crate) async fn one_batch_reserves_in_the_order_given(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let new = |id, minor| new_intent(id, "p-1", euro(minor));
    let batch = [new("r-9", 600), new("r-1", 600), new("r-2", 400), new("r-0", 1)];
    let results = fixture.store.submit(&batch).await.unwrap();
    assert!(matches!(results[0], SubmitResult::Created(_)), "{results:?}");
    assert_eq!(results[1], SubmitResult::ExceedsRefundable { refundable_minor: 400 });
    assert!(matches!(results[2], SubmitResult::Created(_)), "{results:?}");
    assert_eq!(results[3], SubmitResult::ExceedsRefundable { refundable_minor: 0 });
    assert_eq!(fixture.payment("p-1").await.refundable_minor(), 0);
}

/// Submits all at once, each from a task of its own, and counts what was accepted.
async fn accepted(fixture: &Fixture, payment: &str, requests_minor: &[i64], currency: &str) -> usize {
    let mut tasks = tokio::task::JoinSet::new();
    for (number, minor) in requests_minor.iter().enumerate() {
        let store = Arc::clone(&fixture.store);
        let new = new_intent(&format!("r-{payment}-{number}"), payment, money(*minor, currency));
        tasks.spawn(async move { store.submit(&[new]).await.unwrap().remove(0) });
    }
    let results = tasks.join_all().await;
    let refused = |result: &&SubmitResult| matches!(result, SubmitResult::ExceedsRefundable { .. });
    let accepted = results.iter().filter(|result| matches!(result, SubmitResult::Created(_))).count();
    assert_eq!(accepted + results.iter().filter(refused).count(), requests_minor.len(), "{results:?}");
    accepted
}

pub(crate) async fn parallel_refunds_never_exceed_the_capture(fixture: &Fixture) {
    let check = async |payment: &str, captured: i64, currency: &str, requests: &[i64], expected: (usize, i64, i64)| {
        fixture.import(&new_payment(payment, money(captured, currency))).await;
        let accepted = accepted(fixture, payment, requests, currency).await;
        let payment = fixture.payment(payment).await;
        assert_eq!((accepted, payment.reserved_minor, payment.refundable_minor()), expected, "{requests:?}");
    };
    check("p-1", 10_000, "USD", &[6_000, 6_000], (1, 6_000, 4_000)).await;
    check("p-2", 10_000, "USD", &[6_000; 20], (1, 6_000, 4_000)).await;
    check("p-3", 10_000, "USD", &[3_000; 20], (3, 9_000, 1_000)).await;
    check("p-4", 392, "GBP", &[392, 392], (1, 392, 0)).await;
}

pub(crate) async fn two_at_once_fifty_times_have_one_winner_each(fixture: &Fixture) {
    for round in 0..50 {
        let payment = format!("p-{round}");
        fixture.import(&new_payment(&payment, money(10_000, "USD"))).await;
        assert_eq!(accepted(fixture, &payment, &[6_000, 6_000], "USD").await, 1, "round {round}");
        assert_eq!(fixture.payment(&payment).await.refundable_minor(), 4_000, "round {round}");
    }
}

pub(crate) async fn what_was_charged_back_is_not_refundable(fixture: &Fixture) {
    let mut disputed = new_payment("p-1", euro(10_000));
    disputed.charged_back_minor = 7_000;
    fixture.import(&disputed).await;
    let submit = |id, minor| fixture.submit_one(new_intent(id, "p-1", euro(minor)));
    assert_eq!(submit("r-1", 5_000).await, SubmitResult::ExceedsRefundable { refundable_minor: 3_000 });
    assert!(matches!(submit("r-1", 3_000).await, SubmitResult::Created(_)));

    let mut lost = new_payment("p-2", euro(10_000));
    lost.charged_back_minor = 12_000;
    fixture.import(&lost).await;
    let beyond = fixture.submit_one(new_intent("r-2", "p-2", euro(1))).await;
    assert_eq!(beyond, SubmitResult::ExceedsRefundable { refundable_minor: -2_000 });
}

pub(crate) async fn one_key_with_other_content_refunds_once(fixture: &Fixture) {
    fixture.import(&new_payment("p-1", money(10_000, "CVE"))).await;
    fixture.import(&new_payment("p-2", money(10_000, "CVE"))).await;
    let submit = |payment, minor| fixture.submit_one(new_intent("k1", payment, money(minor, "CVE")));
    assert!(matches!(submit("p-1", 4_000).await, SubmitResult::Created(_)));
    assert!(matches!(submit("p-1", 4_000).await, SubmitResult::Same(_)));
    assert!(matches!(submit("p-1", 5_000).await, SubmitResult::Conflict(_)));
    assert!(matches!(submit("p-2", 4_000).await, SubmitResult::Conflict(_)));
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 4_000);
    assert_eq!(fixture.payment("p-2").await.reserved_minor, 0);
}

pub(crate) async fn proof_beyond_the_capture_is_recorded(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let first = fixture.created(new_intent("r-1", "p-1", euro(1_000))).await;
    let failed = fixture.write(change_to(&first, fixture.token(1), State::Failed, first.updated_at)).await;
    fixture.created(new_intent("r-2", "p-1", euro(1_000))).await;
    fixture.succeed("r-2", 1).await;
    // The provider shows that the first one happened after all.
    let mut proved = change_to(&failed, fixture.token(2), State::Succeeded, failed.updated_at);
    proved.transfer = Some(TransferKind::Post);
    proved.breaks = vec![NewBreak { class: "contradicted_final", detail: "found after it had failed".to_owned() }];
    fixture.write(proved).await;
    let payment = fixture.payment("p-1").await;
    assert_eq!((payment.refunded_minor, payment.reserved_minor, payment.refundable_minor()), (2_000, 0, -1_000));
    let story = fixture.store.story(&intent_id("r-1")).await.unwrap().unwrap();
    assert_eq!((story.transfers.len(), story.breaks.len()), (1, 1));
    let submit = fixture.submit_one(new_intent("r-3", "p-1", euro(1))).await;
    assert_eq!(submit, SubmitResult::ExceedsRefundable { refundable_minor: -1_000 });
}
