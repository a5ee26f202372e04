//! Submitting: one placeholder for one name, and its reservation beside it.

use super::fixture::{Fixture, assert_refused, euro, intent_id, money, new_intent, new_payment};
use chrono::TimeDelta;
use jobs::ids::Token;
use jobs::refund::intent::{MACHINE_VERSION, NextAction};
use jobs::refund::state::State;
use orchestrator::store::submit::{NewIntent, SubmitResult};
use std::sync::Arc;

pub(crate) async fn a_new_intent_is_created_with_its_reservation(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let due_at = fixture.far_past().await;
    let mut new = new_intent("r-1", "p-1", euro(400));
    new.refund_reason = Some("wrong size, \"blue\" – größer".to_owned());
    new.due_at = Some(due_at);
    let SubmitResult::Created(intent) = fixture.submit_one(new.clone()).await else { panic!("not created") };

    assert_eq!((intent.state, intent.version, intent.fence), (State::Recorded, 1, Token::NONE));
    assert_eq!((intent.next_action, intent.next_action_at, intent.rung), (NextAction::Create, Some(due_at), 0));
    assert_eq!((intent.holder_session, intent.open_attempt, &intent.psp_refund_ref), (None, None, &None));
    assert_eq!((&intent.state_reason, intent.machine_version), (&None, MACHINE_VERSION));
    assert_eq!((&intent.intent_id, &intent.payment_id, intent.amount), (&new.intent_id, &new.payment_id, new.amount));
    assert_eq!((&intent.psp, &intent.psp_account), (&new.psp, &new.psp_account));
    assert_eq!(intent.psp_payment_ref, new.psp_payment_ref);
    assert_eq!((&intent.merchant_reference, &intent.refund_reason), (&new.merchant_reference, &new.refund_reason));
    assert_eq!((&intent.idempotency_key, &intent.create_body), (&new.idempotency_key, &new.create_body));
    let file = fixture.file("r-1").await;
    assert_eq!((file.intent, file.attempts, file.unread), (*intent, Vec::new(), Vec::new()));
    let payment = fixture.payment("p-1").await;
    assert_eq!((payment.reserved_minor, payment.refunded_minor, payment.refundable_minor()), (400, 0, 600));
}

pub(crate) async fn the_same_body_again_is_the_same_intent(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let new = new_intent("r-1", "p-1", euro(400));
    let first = fixture.created(new.clone()).await;
    // Whatever the adapter or the clock would say today, the stored key, body and time stand.
    let mut again = new.clone();
    again.create_body = b"other bytes".to_vec();
    again.due_at = Some(fixture.far_future().await);
    for repeat in [new, again] {
        assert_eq!(fixture.submit_one(repeat).await, SubmitResult::Same(Box::new(first.clone())));
    }
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 400);
}

pub(crate) async fn another_body_is_a_conflict(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    fixture.pay("p-2", 1_000).await;
    let first = fixture.created(new_intent("r-1", "p-1", euro(400))).await;
    let check = async |what: &str, alter: fn(&mut NewIntent)| {
        let mut other = new_intent("r-1", "p-1", euro(400));
        alter(&mut other);
        let result = fixture.submit_one(other).await;
        assert_eq!(result, SubmitResult::Conflict(Box::new(first.clone())), "{what}");
    };
    check("amount", |new| new.amount = euro(401)).await;
    check("currency", |new| new.amount = money(400, "USD")).await;
    check("payment", |new| *new = new_intent("r-1", "p-2", euro(400))).await;
    check("payment nobody knows", |new| *new = new_intent("r-1", "p-9", euro(400))).await;
    check("merchant reference", |new| new.merchant_reference = Some("return_2".to_owned())).await;
    check("no merchant reference", |new| new.merchant_reference = None).await;
    check("reason", |new| new.refund_reason = Some("other".to_owned())).await;
    check("more than is left", |new| new.amount = euro(5_000)).await;
    assert_eq!(fixture.row("r-1").await, first);
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 400);
    assert_eq!(fixture.payment("p-2").await.reserved_minor, 0);
}

pub(crate) async fn a_payment_nobody_imported_is_unknown(fixture: &Fixture) {
    let result = fixture.submit_one(new_intent("r-1", "p-1", euro(400))).await;
    assert_eq!(result, SubmitResult::UnknownPayment);
    assert!(fixture.store.load(&[intent_id("r-1")]).await.unwrap().files.is_empty());
}

pub(crate) async fn a_payment_at_another_place_is_a_mismatch(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let check = async |what: &str, alter: fn(&mut NewIntent)| {
        let mut new = new_intent("r-1", "p-1", euro(400));
        alter(&mut new);
        let expected = SubmitResult::PaymentMismatch { payment_currency: "EUR".to_owned() };
        assert_eq!(fixture.submit_one(new).await, expected, "{what}");
    };
    check("currency", |new| new.amount = money(400, "USD")).await;
    check("provider", |new| new.psp = "other".to_owned()).await;
    check("account", |new| new.psp_account = "other".to_owned()).await;
    check("provider's payment", |new| new.psp_payment_ref = "pi_other".to_owned()).await;
    check("currency and too much", |new| new.amount = money(4_000, "USD")).await;
    assert!(fixture.store.load(&[intent_id("r-1")]).await.unwrap().files.is_empty());
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 0);
}

pub(crate) async fn an_intent_without_a_due_time_is_due_now(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let before = fixture.now().await;
    let SubmitResult::Created(intent) = fixture.submit_one(new_intent("r-1", "p-1", euro(400))).await else {
        panic!("not created")
    };
    let due_at = intent.next_action_at.unwrap();
    assert!(before <= due_at && due_at - before < TimeDelta::minutes(1), "{before} {due_at}");
    assert_eq!(fixture.due(&[], true).await, ["r-1"]);
}

pub(crate) async fn one_batch_sees_its_own_intents_in_order(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let new = |id, minor| new_intent(id, "p-1", euro(minor));
    let batch = [new("r-2", 300), new("r-1", 100), new("r-2", 300), new("r-2", 301), new_intent("r-3", "p-9", euro(1))];
    let results = fixture.store.submit(&batch).await.unwrap();
    assert!(matches!(&results[0], SubmitResult::Created(intent) if intent.intent_id.as_str() == "r-2"), "{results:?}");
    assert!(matches!(&results[1], SubmitResult::Created(intent) if intent.intent_id.as_str() == "r-1"), "{results:?}");
    assert!(matches!(&results[2], SubmitResult::Same(intent) if intent.intent_id.as_str() == "r-2"), "{results:?}");
    assert!(matches!(&results[3], SubmitResult::Conflict(intent) if intent.amount == euro(300)), "{results:?}");
    assert_eq!(results[4], SubmitResult::UnknownPayment);
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 400);
}

pub(crate) async fn one_of_fifty_parallel_submits_creates(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let store = Arc::clone(&fixture.store);
        tasks.spawn(async move { store.submit(&[new_intent("r-1", "p-1", euro(400))]).await.unwrap().remove(0) });
    }
    let results = tasks.join_all().await;
    let created = results.iter().filter(|result| matches!(result, SubmitResult::Created(_))).count();
    let same = results.iter().filter(|result| matches!(result, SubmitResult::Same(_))).count();
    assert_eq!((created, same), (1, 49));
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 400);
}

pub(crate) async fn a_key_serves_one_intent(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    fixture.created(new_intent("r-1", "p-1", euro(100))).await;
    let mut other = new_intent("r-2", "p-1", euro(100));
    other.idempotency_key = "key_r-1".to_owned();
    // Which rule speaks differs between engines; that nothing is left behind does not.
    assert_refused(&fixture.store.submit(&[other]).await, "");
    assert!(fixture.store.load(&[intent_id("r-2")]).await.unwrap().files.is_empty());
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 100);

    let mut long = new_intent("r-3", "p-1", euro(100));
    long.idempotency_key = "k".repeat(46);
    assert_refused(&fixture.store.submit(&[long]).await, "refund_intents_key_length");
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 100);
}

pub(crate) async fn large_amounts_read_back_equal(fixture: &Fixture) {
    for minor in [2_147_483_647, 2_147_483_648, 4_294_967_296, 5_000_000_000, 9_007_199_254_740_993] {
        let id = format!("r-{minor}");
        let payment = format!("p-{minor}");
        fixture.import(&new_payment(&payment, euro(minor))).await;
        let created = fixture.created(new_intent(&id, &payment, euro(minor))).await;
        assert_eq!(created.amount, euro(minor));
        assert_eq!(fixture.row(&id).await.amount, euro(minor));
        assert_eq!(fixture.payment(&payment).await.captured, euro(minor));
        assert_eq!(fixture.payment(&payment).await.reserved_minor, minor);
        fixture.succeed(&id, 1).await;
        let story = fixture.store.story(&intent_id(&id)).await.unwrap().unwrap();
        assert_eq!((story.transfers[0].amount, story.payment.refunded_minor), (euro(minor), minor));
    }
    let sum = 2_147_483_647 + 2_147_483_648 + 4_294_967_296 + 5_000_000_000 + 9_007_199_254_740_993;
    for balance in fixture.store.balances().await.unwrap() {
        assert_eq!(balance.debit_minor + balance.credit_minor, sum, "{balance:?}");
    }
}

pub(crate) async fn an_amount_that_is_not_positive_leaves_nothing_behind(fixture: &Fixture) {
    fixture.pay("p-1", 10_000).await;
    for minor in [0, -1, -5_000, i64::MIN] {
        let good = new_intent("r-1", "p-1", euro(100));
        let bad = new_intent("r-2", "p-1", euro(minor));
        assert_refused(&fixture.store.submit(&[good, bad]).await, "refund_intents_amount_positive");
        assert!(fixture.store.load(&[intent_id("r-1"), intent_id("r-2")]).await.unwrap().files.is_empty());
        assert_eq!(fixture.payment("p-1").await.refundable_minor(), 10_000);
    }
}
