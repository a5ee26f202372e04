//! Importing payments: once each, and never silently another one.

use super::fixture::{Fixture, assert_refused, euro, money, new_intent, new_payment, payment_id};
use orchestrator::store::submit::{ImportResult, NewPayment};

pub(crate) async fn a_payment_is_inserted_once(fixture: &Fixture) {
    let mut new = new_payment("p-1", euro(1_000));
    new.charged_back_minor = 70;
    let results = [ImportResult::Inserted, ImportResult::Same];
    for expected in results {
        assert_eq!(fixture.store.import_payments(std::slice::from_ref(&new)).await.unwrap(), [expected]);
    }
    let payment = fixture.payment("p-1").await;
    assert_eq!((payment.payment_id, payment.psp, payment.psp_account), (new.payment_id, new.psp, new.psp_account));
    assert_eq!((payment.psp_payment_ref, payment.captured), (new.psp_payment_ref, new.captured));
    assert_eq!((payment.merchant_reference, payment.charged_back_minor), (new.merchant_reference, 70));
    assert_eq!((payment.refunded_minor, payment.reserved_minor), (0, 0));
    assert_eq!(fixture.store.payment(&payment_id("p-2")).await.unwrap(), None);
}

pub(crate) async fn other_fields_are_a_conflict_and_change_nothing(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let before = fixture.payment("p-1").await;
    let check = async |what: &str, alter: fn(&mut NewPayment)| {
        let mut other = new_payment("p-1", euro(1_000));
        alter(&mut other);
        let results = fixture.store.import_payments(&[other, new_payment("p-2", euro(1))]).await.unwrap();
        assert_eq!(results[0], ImportResult::Conflict, "{what}");
        assert_eq!(fixture.payment("p-1").await, before, "{what}");
    };
    check("provider", |new| new.psp = "other".to_owned()).await;
    check("account", |new| new.psp_account = "other".to_owned()).await;
    check("provider's payment", |new| new.psp_payment_ref = "pi_other".to_owned()).await;
    check("no reference", |new| new.merchant_reference = None).await;
    check("amount", |new| new.captured = euro(1_001)).await;
    check("currency", |new| new.captured = money(1_000, "USD")).await;
    check("charged back", |new| new.charged_back_minor = 1).await;
    // The rest of those batches went in.
    assert_eq!(fixture.payment("p-2").await.captured, euro(1));

    let mut negative = new_payment("p-3", euro(1));
    negative.charged_back_minor = -1;
    let bad =
        [("payments_captured_positive", new_payment("p-3", euro(0))), ("payments_charged_back_not_negative", negative)];
    for (rule, payment) in bad {
        assert_refused(&fixture.store.import_payments(&[payment]).await, rule);
    }
    assert_eq!(fixture.store.payment(&payment_id("p-3")).await.unwrap(), None);
}

pub(crate) async fn a_payment_of_the_provider_has_one_name(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let mut renamed = new_payment("p-2", euro(1_000));
    renamed.psp_payment_ref = "pi_p-1".to_owned();
    assert_eq!(fixture.store.import_payments(&[renamed]).await.unwrap(), [ImportResult::Conflict]);
    assert_eq!(fixture.store.payment(&payment_id("p-2")).await.unwrap(), None);
    // At another account the same text is another payment.
    let mut elsewhere = new_payment("p-2", euro(1_000));
    elsewhere.psp_payment_ref = "pi_p-1".to_owned();
    elsewhere.psp_account = "other".to_owned();
    fixture.import(&elsewhere).await;
}

pub(crate) async fn one_batch_sees_its_own_payments(fixture: &Fixture) {
    let batch = [
        new_payment("p-1", euro(1_000)),
        new_payment("p-2", euro(1_000)),
        new_payment("p-1", euro(1_000)),
        new_payment("p-2", euro(2_000)),
    ];
    let expected = [ImportResult::Inserted, ImportResult::Inserted, ImportResult::Same, ImportResult::Conflict];
    assert_eq!(fixture.store.import_payments(&batch).await.unwrap(), expected);
    assert_eq!(fixture.payment("p-2").await.captured, euro(1_000));
}

pub(crate) async fn counters_do_not_make_a_payment_another_one(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    fixture.created(new_intent("r-1", "p-1", euro(400))).await;
    let again = new_payment("p-1", euro(1_000));
    assert_eq!(fixture.store.import_payments(&[again]).await.unwrap(), [ImportResult::Same]);
    assert_eq!(fixture.payment("p-1").await.reserved_minor, 400);
}
