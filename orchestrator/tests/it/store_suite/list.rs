//! Lists: filters, and pages that neither lose nor repeat.

use super::fixture::{Fixture, change_to, euro, new_intent, new_payment, payment_id};
use chrono::TimeDelta;
use jobs::refund::state::State;
use orchestrator::store::read::IntentFilter;

async fn listed(fixture: &Fixture, filter: &IntentFilter) -> Vec<String> {
    let page = fixture.store.list(filter, None, 100).await.unwrap();
    assert_eq!(page.next_cursor, None);
    let mut ids: Vec<String> = page.intents.iter().map(|intent| intent.intent_id.to_string()).collect();
    ids.sort();
    ids
}

/// Reads all pages, at most this many intents each.
async fn paged(fixture: &Fixture, filter: &IntentFilter, limit: usize) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..100 {
        let page = fixture.store.list(filter, cursor.as_deref(), limit).await.unwrap();
        assert!(page.intents.len() <= limit);
        ids.extend(page.intents.iter().map(|intent| intent.intent_id.to_string()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return ids;
        }
        assert_eq!(page.intents.len(), limit, "only the last page may be short");
    }
    panic!("pages do not end");
}

pub(crate) async fn filters_narrow(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let mut elsewhere = new_payment("p-2", euro(1_000));
    elsewhere.psp = "other".to_owned();
    fixture.import(&elsewhere).await;
    fixture.created(new_intent("r-1", "p-1", euro(1))).await;
    let second = fixture.created(new_intent("r-2", "p-1", euro(1))).await;
    let mut third = new_intent("r-3", "p-2", euro(1));
    third.psp = "other".to_owned();
    fixture.created(third).await;
    fixture.write(change_to(&second, fixture.token(1), State::NeedsReview, second.updated_at)).await;

    let check = async |filter: IntentFilter, expected: &[&str]| {
        assert_eq!(listed(fixture, &filter).await, expected, "{filter:?}");
    };
    let all = IntentFilter::default;
    let now = fixture.now().await;
    let (before, after) = (Some(now - TimeDelta::hours(1)), Some(now + TimeDelta::hours(1)));
    check(all(), &["r-1", "r-2", "r-3"]).await;
    check(IntentFilter { states: vec![State::Recorded], ..all() }, &["r-1", "r-3"]).await;
    check(IntentFilter { states: vec![State::NeedsReview, State::Failed], ..all() }, &["r-2"]).await;
    check(IntentFilter { states: State::ALL.to_vec(), ..all() }, &["r-1", "r-2", "r-3"]).await;
    check(IntentFilter { psp: Some("other".to_owned()), ..all() }, &["r-3"]).await;
    check(IntentFilter { payment_id: Some(payment_id("p-1")), ..all() }, &["r-1", "r-2"]).await;
    check(IntentFilter { merchant_reference: Some("return_r-2".to_owned()), ..all() }, &["r-2"]).await;
    check(IntentFilter { created_from: before, created_before: after, ..all() }, &["r-1", "r-2", "r-3"]).await;
    check(IntentFilter { created_from: after, ..all() }, &[]).await;
    check(IntentFilter { created_before: before, ..all() }, &[]).await;
    // From is in, before is out.
    check(IntentFilter { created_before: Some(second.created_at), payment_id: Some(payment_id("p-2")), ..all() }, &[])
        .await;
    let own = IntentFilter { merchant_reference: Some("return_r-2".to_owned()), ..all() };
    check(IntentFilter { created_from: Some(second.created_at), ..own.clone() }, &["r-2"]).await;
    check(IntentFilter { created_before: Some(second.created_at), ..own }, &[]).await;
    let states = vec![State::Recorded];
    check(IntentFilter { states, payment_id: Some(payment_id("p-1")), ..all() }, &["r-1"]).await;
}

pub(crate) async fn pages_neither_lose_nor_repeat(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    // Some in one batch, and so of one age; some one by one.
    let batch: Vec<_> = (0..10).map(|number| new_intent(&format!("r-b{number}"), "p-1", euro(1))).collect();
    fixture.store.submit(&batch).await.unwrap();
    for number in 0..7 {
        let intent = fixture.created(new_intent(&format!("r-{number}"), "p-1", euro(1))).await;
        if number % 2 == 0 {
            let future = fixture.far_future().await;
            fixture.write(change_to(&intent, fixture.token(1), State::Unknown, future)).await;
        }
    }
    let filters = [
        (IntentFilter::default(), 17),
        (IntentFilter { states: vec![State::Unknown], ..IntentFilter::default() }, 4),
        (IntentFilter { states: vec![State::Unknown, State::Recorded], ..IntentFilter::default() }, 17),
        (IntentFilter { payment_id: Some(payment_id("p-1")), ..IntentFilter::default() }, 17),
        (IntentFilter { states: vec![State::Failed], ..IntentFilter::default() }, 0),
    ];
    for (filter, count) in filters {
        let page = fixture.store.list(&filter, None, 100).await.unwrap();
        let order: Vec<_> = page.intents.iter().map(|intent| (intent.created_at, intent.intent_id.clone())).collect();
        assert_eq!(order.len(), count, "{filter:?}");
        assert!(order.windows(2).all(|pair| pair[0] > pair[1]), "newest first: {order:?}");
        let whole: Vec<String> = order.iter().map(|(_, id)| id.to_string()).collect();
        for limit in [1, 2, 3, 4, 16, 17, 18] {
            assert_eq!(paged(fixture, &filter, limit).await, whole, "{filter:?} limit {limit}");
        }
    }
}

pub(crate) async fn what_arrives_between_pages_disturbs_none(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    for number in 0..6 {
        fixture.created(new_intent(&format!("r-{number}"), "p-1", euro(1))).await;
    }
    let all = IntentFilter::default();
    let first = fixture.store.list(&all, None, 3).await.unwrap();
    fixture.created(new_intent("r-9", "p-1", euro(1))).await;
    let moved = first.intents[0].clone();
    fixture.write(change_to(&moved, fixture.token(1), State::Canceled, moved.updated_at)).await;
    let second = fixture.store.list(&all, first.next_cursor.as_deref(), 3).await.unwrap();
    let ids: Vec<&str> = first.intents.iter().chain(&second.intents).map(|intent| intent.intent_id.as_str()).collect();
    assert_eq!(ids, ["r-5", "r-4", "r-3", "r-2", "r-1", "r-0"]);
    assert_eq!(second.next_cursor, None);
}

pub(crate) async fn a_cursor_of_nobody_is_an_error(fixture: &Fixture) {
    fixture.intent("r-1").await;
    for cursor in ["", "x", "1", "....", "' OR '1'='1", "99999999999999999999.r-1", "\u{0}"] {
        let page = fixture.store.list(&IntentFilter::default(), Some(cursor), 10).await;
        assert!(page.is_err(), "{cursor:?} {page:?}");
    }
}
