//! What others than the holder say: stored once, applied once.

use super::fixture::{Fixture, attempt_id, cancel, change_to, euro, intent_id};
use jobs::refund::intent::{InboxMessage, Intent};
use jobs::refund::outcome::{Outcome, PspRefund};
use jobs::refund::state::{PspStatus, State};
use orchestrator::store::change::{Change, InboxApplied, InboxResult, NewInboxRow, WriteResult};
use std::sync::Arc;

async fn reading(fixture: &Fixture, intent: &Intent, counter: i64, inbox_ids: &[i64]) -> Change {
    let mut change = change_to(intent, fixture.token(counter), State::Unknown, fixture.far_future().await);
    let applied = |inbox_id: &i64| InboxApplied { inbox_id: *inbox_id, refused_because: None };
    change.inbox_applied = inbox_ids.iter().map(applied).collect();
    change
}

async fn unread(fixture: &Fixture, id: &str) -> Vec<i64> {
    fixture.file(id).await.unread.iter().map(|row| row.inbox_id).collect()
}

pub(crate) async fn a_source_id_is_stored_once(fixture: &Fixture) {
    fixture.intent("r-1").await;
    fixture.intent("r-2").await;
    let first = fixture.tell("r-1", "s-1").await;
    let batch = [cancel("r-1", "s-1"), cancel("r-2", "s-1"), cancel("r-1", "s-2"), cancel("r-1", "s-2")];
    let results = fixture.store.append_inbox(&batch).await.unwrap();
    assert_eq!(results[..2], [InboxResult::Duplicate; 2]);
    let InboxResult::Stored { inbox_id: second } = results[2] else { panic!("{results:?}") };
    assert_eq!(results[3], InboxResult::Duplicate);
    assert_eq!(unread(fixture, "r-1").await, [first, second]);
    assert!(unread(fixture, "r-2").await.is_empty());
    // Also after it was read.
    let intent = fixture.row("r-1").await;
    fixture.write(reading(fixture, &intent, 1, &[first]).await).await;
    assert_eq!(fixture.store.append_inbox(&batch[..1]).await.unwrap(), [InboxResult::Duplicate]);
    assert_eq!(unread(fixture, "r-1").await, [second]);
}

pub(crate) async fn a_message_for_an_unknown_intent_is_not_stored(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let batch = [cancel("r-9", "s-1"), cancel("r-1", "s-2")];
    let results = fixture.store.append_inbox(&batch).await.unwrap();
    assert_eq!(results[0], InboxResult::UnknownIntent);
    assert!(matches!(results[1], InboxResult::Stored { .. }));
    // A source id that was seen tells more than the name beside it.
    assert_eq!(fixture.store.append_inbox(&[cancel("r-9", "s-2")]).await.unwrap(), [InboxResult::Duplicate]);
    // The one that was not stored is still free.
    fixture.intent("r-9").await;
    fixture.tell("r-9", "s-1").await;
}

pub(crate) async fn every_message_reads_back_in_order(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let refund = PspRefund {
        psp_refund_ref: "re_1".to_owned(),
        status: PspStatus::Canceled,
        amount: euro(100),
        reason: Some("ünïcode".to_owned()),
    };
    let late = |outcome| InboxMessage::LateAnswer { attempt_id: attempt_id("r-1", 1), outcome, duration_ms: 45_001 };
    let messages = [
        InboxMessage::Cancel { actor: "ann".to_owned(), reason: "it's \"kept\"".to_owned() },
        InboxMessage::Replay { actor: "bob".to_owned(), reason: String::new() },
        late(Outcome::Accepted { refund }),
        late(Outcome::Absent),
        InboxMessage::ProviderNotice { event_id: "evt_1".to_owned(), event_type: "refund.updated".to_owned() },
    ];
    let rows: Vec<NewInboxRow> = messages
        .iter()
        .enumerate()
        .map(|(number, message)| NewInboxRow {
            intent_id: intent_id("r-1"),
            source_id: format!("s-{number}"),
            message: message.clone(),
        })
        .collect();
    let results = fixture.store.append_inbox(&rows).await.unwrap();
    let read = fixture.file("r-1").await.unread;
    assert_eq!(read.len(), rows.len());
    for ((row, new), result) in read.iter().zip(&rows).zip(results) {
        assert_eq!((&row.intent_id, &row.source_id, &row.message), (&new.intent_id, &new.source_id, &new.message));
        assert_eq!(result, InboxResult::Stored { inbox_id: row.inbox_id });
    }
    assert!(read.windows(2).all(|pair| pair[0].inbox_id < pair[1].inbox_id));
}

pub(crate) async fn a_message_is_applied_exactly_once(fixture: &Fixture) {
    let intent = fixture.intent("r-1").await;
    let first = fixture.tell("r-1", "s-1").await;
    let second = fixture.tell("r-1", "s-2").await;
    let mut change = reading(fixture, &intent, 1, &[first]).await;
    change.inbox_applied[0].refused_because = Some("a create was started".to_owned());
    let read = fixture.write(change).await;
    assert_eq!(unread(fixture, "r-1").await, [second]);
    assert_eq!(fixture.apply_one(reading(fixture, &read, 1, &[first]).await).await, WriteResult::StateMoved);
    assert_eq!(fixture.apply_one(reading(fixture, &read, 2, &[first]).await).await, WriteResult::StateMoved);
    assert_eq!(fixture.row("r-1").await, read);
    fixture.write(reading(fixture, &read, 1, &[second]).await).await;
    let story = fixture.store.story(&intent_id("r-1")).await.unwrap().unwrap();
    let readings: Vec<_> = story.inbox.iter().map(|entry| entry.applied.as_ref().unwrap()).collect();
    assert_eq!(readings[0].refused_because.as_deref(), Some("a create was started"));
    assert_eq!((readings[1].refused_because.as_deref(), readings[0].version, readings[1].version), (None, 2, 3));
}

pub(crate) async fn a_message_of_another_intent_is_not_ours_to_apply(fixture: &Fixture) {
    let mine = fixture.intent("r-1").await;
    fixture.intent("r-2").await;
    let theirs = fixture.tell("r-2", "s-1").await;
    for inbox_id in [theirs, theirs + 1_000] {
        let change = reading(fixture, &mine, 1, &[inbox_id]).await;
        assert_eq!(fixture.apply_one(change).await, WriteResult::StateMoved);
    }
    assert_eq!(unread(fixture, "r-2").await, [theirs]);
    assert_eq!(fixture.row("r-1").await, mine);
}

pub(crate) async fn one_read_message_loses_the_whole_change(fixture: &Fixture) {
    let intent = fixture.intent("r-1").await;
    let first = fixture.tell("r-1", "s-1").await;
    let second = fixture.tell("r-1", "s-2").await;
    let read = fixture.write(reading(fixture, &intent, 1, &[first]).await).await;
    let other = fixture.intent("r-2").await;
    let losing = reading(fixture, &read, 1, &[first, second]).await;
    let winning = reading(fixture, &other, 1, &[]).await;
    let results = fixture.store.apply(&[losing, winning]).await.unwrap();
    assert_eq!(results, [WriteResult::StateMoved, WriteResult::Written]);
    assert_eq!(fixture.row("r-1").await, read);
    assert_eq!(unread(fixture, "r-1").await, [second]);
}

pub(crate) async fn of_two_readers_at_once_one_applies(fixture: &Fixture) {
    for round in 0..10 {
        let id = format!("r-{round}");
        let intent = fixture.intent(&id).await;
        let inbox_id = fixture.tell(&id, &format!("s-{round}")).await;
        let mut tasks = tokio::task::JoinSet::new();
        for counter in [1, 2] {
            let store = Arc::clone(&fixture.store);
            let change = reading(fixture, &intent, counter, &[inbox_id]).await;
            tasks.spawn(async move { store.apply(&[change]).await.unwrap()[0] });
        }
        let results = tasks.join_all().await;
        assert_eq!(results.iter().filter(|result| **result == WriteResult::Written).count(), 1, "{results:?}");
        let story = fixture.store.story(&intent_id(&id)).await.unwrap().unwrap();
        assert_eq!((story.intent.version, story.inbox[0].applied.as_ref().unwrap().version), (2, 2));
    }
}
