//! The bounds of a call.

use super::fixture::{Fixture, cancel, change_to, due_query, euro, intent_id, new_intent, new_payment};
use jobs::refund::state::State;
use orchestrator::store::change::{InboxResult, WriteResult};
use orchestrator::store::read::IntentFilter;
use orchestrator::store::submit::{ImportResult, SubmitResult};
use orchestrator::store::{BATCH_MAX, DueQuery, StoreError};

pub(crate) async fn nothing_in_is_nothing_out(fixture: &Fixture) {
    assert!(fixture.store.import_payments(&[]).await.unwrap().is_empty());
    assert!(fixture.store.submit(&[]).await.unwrap().is_empty());
    assert!(fixture.store.apply(&[]).await.unwrap().is_empty());
    assert!(fixture.store.append_inbox(&[]).await.unwrap().is_empty());
    assert!(fixture.store.load(&[]).await.unwrap().files.is_empty());
}

pub(crate) async fn a_full_batch_passes(fixture: &Fixture) {
    let ids: Vec<String> = (0..BATCH_MAX).map(|number| format!("x-{number:04}")).collect();
    let payments: Vec<_> = ids.iter().map(|id| new_payment(id, euro(100))).collect();
    let imported = fixture.store.import_payments(&payments).await.unwrap();
    assert!(imported.iter().all(|result| *result == ImportResult::Inserted) && imported.len() == BATCH_MAX);
    let intents: Vec<_> = ids.iter().map(|id| new_intent(id, id, euro(100))).collect();
    let submitted = fixture.store.submit(&intents).await.unwrap();
    assert!(submitted.iter().all(|result| matches!(result, SubmitResult::Created(_))) && submitted.len() == BATCH_MAX);
    let messages: Vec<_> = ids.iter().map(|id| cancel(id, id)).collect();
    let told = fixture.store.append_inbox(&messages).await.unwrap();
    assert!(told.iter().all(|result| matches!(result, InboxResult::Stored { .. })) && told.len() == BATCH_MAX);
    let due = fixture.store.due(&DueQuery { limit: BATCH_MAX, ..due_query() }).await.unwrap();
    assert_eq!(due.len(), BATCH_MAX);

    let names: Vec<_> = ids.iter().map(|id| intent_id(id)).collect();
    let files = fixture.store.load(&names).await.unwrap().files;
    let future = fixture.far_future().await;
    let installs: Vec<_> = files.iter().map(|file| fixture.installing(&file.intent, 1, future)).collect();
    let written = fixture.store.apply(&installs).await.unwrap();
    assert!(written.iter().all(|result| *result == WriteResult::Written) && written.len() == BATCH_MAX);
    let files = fixture.store.load(&names).await.unwrap().files;
    let answers: Vec<_> = files.iter().map(|file| fixture.succeeding(&file.intent)).collect();
    let written = fixture.store.apply(&answers).await.unwrap();
    assert!(written.iter().all(|result| *result == WriteResult::Written) && written.len() == BATCH_MAX);
    let balances = fixture.store.balances().await.unwrap();
    let sum = i64::try_from(BATCH_MAX).unwrap() * 100;
    assert_eq!(
        balances.iter().map(|balance| (balance.debit_minor, balance.credit_minor)).collect::<Vec<_>>(),
        [(sum, 0), (0, sum)]
    );
}

fn assert_too_many<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::TooMany { count, max, .. }) if *count == BATCH_MAX + 1 && *max == BATCH_MAX),
        "{result:?}"
    );
}

/// A higher limit asks for more than there will be: a store may refuse it or give what one call returns.
pub(crate) async fn no_call_returns_more_than_a_batch(fixture: &Fixture) {
    let ids: Vec<String> = (0..=BATCH_MAX).map(|number| format!("x-{number:04}")).collect();
    fixture.pay("p-1", 1_000_000).await;
    for ids in ids.chunks(BATCH_MAX) {
        let intents: Vec<_> = ids.iter().map(|id| new_intent(id, "p-1", euro(1))).collect();
        assert_eq!(fixture.store.submit(&intents).await.unwrap().len(), ids.len());
    }
    let (store, many) = (&fixture.store, BATCH_MAX * 2);
    let due = store.due(&DueQuery { limit: many, ..due_query() }).await.map(|due| due.len());
    let found = store.find("p-1", many).await.map(|found| found.len());
    let listed = store.list(&IntentFilter::default(), None, many).await.map(|page| page.intents.len());
    for count in [due, found, listed] {
        assert!(matches!(count, Ok(BATCH_MAX) | Err(StoreError::TooMany { .. })), "{count:?}");
    }
}

pub(crate) async fn more_than_a_batch_is_refused(fixture: &Fixture) {
    let intent = fixture.intent("r-1").await;
    let many = BATCH_MAX + 1;
    let store = &fixture.store;
    assert_too_many(&store.import_payments(&vec![new_payment("p-1", euro(1)); many]).await);
    assert_too_many(&store.submit(&vec![new_intent("r-2", "p-r-1", euro(1)); many]).await);
    let change = change_to(&intent, fixture.token(1), State::Canceled, intent.updated_at);
    assert_too_many(&store.apply(&vec![change; many]).await);
    assert_too_many(&store.append_inbox(&vec![cancel("r-1", "s-1"); many]).await);
    assert_too_many(&store.load(&vec![intent_id("r-1"); many]).await);
    assert_eq!(fixture.row("r-1").await, intent);
}
