//! Everything on record about one intent, and the files rules plan from.

use super::fixture::{Fixture, PSP, change_to, intent_id, outcome_of, payment_id};
use jobs::refund::outcome::Outcome;
use jobs::refund::state::State;
use orchestrator::store::change::{InboxApplied, NewBreak, TransferKind};

pub(crate) async fn everything_on_record_is_told_in_order(fixture: &Fixture) {
    fixture.intent("r-1").await;
    fixture.intent("r-other").await;
    fixture.succeed("r-other", 9).await;
    fixture.tell("r-other", "s-other").await;

    let first = fixture.install("r-1", 1).await;
    let inbox_id = fixture.tell("r-1", "s-1").await;
    let mut unknown = change_to(&first, fixture.token(1), State::Unknown, fixture.far_future().await);
    unknown.outcomes = vec![outcome_of(&first, Outcome::Unknown { reason: "timeout".to_owned() })];
    unknown.inbox_applied = vec![InboxApplied { inbox_id, refused_because: Some("a create was started".to_owned()) }];
    fixture.write(unknown).await;
    let second = fixture.install("r-1", 2).await;
    let succeeded = fixture.write(fixture.succeeding(&second)).await;
    let mut reversed = change_to(&succeeded, fixture.token(3), State::Reversed, succeeded.updated_at);
    reversed.transfer = Some(TransferKind::Reverse);
    reversed.breaks = vec![NewBreak { class: "reversed", detail: "the bank sent it back".to_owned() }];
    let reversed = fixture.write(reversed).await;
    fixture.tell("r-1", "s-2").await;
    fixture.store.pause_psp(PSP, "ann", "answers with 500").await.unwrap();

    let story = fixture.store.story(&intent_id("r-1")).await.unwrap().unwrap();
    assert_eq!((&story.intent, &story.payment.payment_id), (&reversed, &payment_id("p-r-1")));
    assert_eq!(story.payment, fixture.payment("p-r-1").await);
    assert_eq!(story.attempts, fixture.file("r-1").await.attempts);
    let attempts: Vec<_> = story
        .attempts
        .iter()
        .map(|attempt| (attempt.token, attempt.outcome.as_ref().map(|recorded| recorded.outcome.as_str())))
        .collect();
    assert_eq!(attempts, [(fixture.token(1), Some("unknown")), (fixture.token(2), Some("accepted"))]);
    let inbox: Vec<_> =
        story.inbox.iter().map(|entry| (entry.row.source_id.as_str(), entry.applied.is_some())).collect();
    assert_eq!(inbox, [("s-1", true), ("s-2", false)]);
    let transfers: Vec<_> = story.transfers.iter().map(|transfer| (transfer.kind.as_str(), transfer.token)).collect();
    assert_eq!(transfers, [("post", fixture.token(2)), ("reverse", fixture.token(3))]);
    let breaks: Vec<_> = story.breaks.iter().map(|found| (found.class.as_str(), found.detail.as_str())).collect();
    assert_eq!(breaks, [("reversed", "the bank sent it back")]);
    assert_eq!(story.psp_pause.unwrap().reason, "answers with 500");
    assert!(story.now >= story.intent.created_at);
}

pub(crate) async fn an_unknown_intent_has_no_story(fixture: &Fixture) {
    fixture.intent("r-1").await;
    assert_eq!(fixture.store.story(&intent_id("r-2")).await.unwrap(), None);
    let story = fixture.store.story(&intent_id("r-1")).await.unwrap().unwrap();
    assert_eq!((story.attempts.len(), story.inbox.len(), story.transfers.len(), story.breaks.len()), (0, 0, 0, 0));
    assert_eq!(story.psp_pause, None);
}

pub(crate) async fn files_come_in_the_order_asked(fixture: &Fixture) {
    for id in ["r-1", "r-2", "r-3"] {
        fixture.intent(id).await;
    }
    fixture.succeed("r-2", 1).await;
    fixture.tell("r-3", "s-1").await;
    let before = fixture.now().await;
    let loaded = fixture.store.load(&["r-3", "r-9", "r-1", "r-2"].map(intent_id)).await.unwrap();
    let seen: Vec<_> = loaded
        .files
        .iter()
        .map(|file| (file.intent.intent_id.as_str(), file.attempts.len(), file.unread.len()))
        .collect();
    assert_eq!(seen, [("r-3", 0, 1), ("r-1", 0, 0), ("r-2", 1, 0)]);
    assert!(loaded.now >= before && loaded.timeline >= 1);
    assert!(loaded.files.iter().all(|file| file.intent.timeline == loaded.timeline));
}
