//! One refund by any id a person may have.

use super::fixture::{Fixture, euro, intent_id, new_intent};

async fn found(fixture: &Fixture, any_id: &str) -> Vec<String> {
    let mut ids: Vec<String> = fixture.store.find(any_id, 100).await.unwrap().iter().map(ToString::to_string).collect();
    ids.sort();
    ids
}

pub(crate) async fn any_id_a_person_has_finds_the_intent(fixture: &Fixture) {
    for payment in ["p-1", "p-2"] {
        fixture.pay(payment, 1_000).await;
    }
    for (id, payment) in [("r-1", "p-1"), ("r-2", "p-1"), ("r-3", "p-2")] {
        fixture.created(new_intent(id, payment, euro(100))).await;
    }
    fixture.succeed("r-2", 1).await;
    let check = async |any_id: &str, expected: &[&str]| assert_eq!(found(fixture, any_id).await, expected, "{any_id}");
    check("r-1", &["r-1"]).await;
    check("return_r-3", &["r-3"]).await;
    check("re_r-2", &["r-2"]).await;
    check("p-1", &["r-1", "r-2"]).await;
    check("pi_p-1", &["r-1", "r-2"]).await;
    check("order_p-2", &["r-3"]).await;
    // One id, two meanings: both are shown, each intent once.
    let mut named = new_intent("p-1", "p-2", euro(100));
    named.merchant_reference = Some("r-1".to_owned());
    fixture.created(named).await;
    check("p-1", &["p-1", "r-1", "r-2"]).await;
    check("r-1", &["p-1", "r-1"]).await;
    check("p-2", &["p-1", "r-3"]).await;
}

pub(crate) async fn nothing_but_equal_ids_match(fixture: &Fixture) {
    fixture.intent("r-1").await;
    fixture.succeed("r-1", 1).await;
    for any_id in ["", "r", "R-1", "r-1 ", "%", "r-_", "_-1", "key_r-1", "' OR '1'='1", "re_"] {
        assert!(found(fixture, any_id).await.is_empty(), "{any_id:?}");
    }
}

pub(crate) async fn the_newest_come_first_up_to_the_limit(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    for number in 0..5 {
        fixture.created(new_intent(&format!("r-{number}"), "p-1", euro(100))).await;
    }
    // Created one after another, so the ids rise with the times whether or not the clock moves.
    let newest_first: Vec<_> = (0..5).rev().map(|number| intent_id(&format!("r-{number}"))).collect();
    for limit in 1..=6 {
        assert_eq!(fixture.store.find("p-1", limit).await.unwrap(), newest_first[..limit.min(5)], "limit {limit}");
    }
}
