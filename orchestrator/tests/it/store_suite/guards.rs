//! Who may write: the fence, the version, the open attempt and the epoch, each alone.

use super::fixture::{Fixture, attempt_id, change_to, session};
use jobs::ids::Token;
use jobs::refund::state::State;
use orchestrator::store::change::{Change, FenceGuard, WriteResult};

pub(crate) async fn the_fence_must_compare_as_the_guard_says(fixture: &Fixture) {
    let check = async |guard: FenceGuard, counter: i64, expected: WriteResult| {
        let id = format!("r-{guard:?}-{counter}");
        fixture.intent(&id).await;
        let fenced = fixture.install(&id, 5).await;
        let future = fixture.far_future().await;
        let mut change = change_to(&fenced, fixture.token(counter), State::Unknown, future);
        change.fence_guard = guard;
        assert_eq!(fixture.apply_one(change).await, expected, "{guard:?} {counter}");
        let after = fixture.row(&id).await;
        if expected == WriteResult::Written {
            assert_eq!((after.version, after.fence, after.state), (3, fixture.token(counter), State::Unknown));
        } else {
            assert_eq!(after, fenced, "{guard:?} {counter}");
        }
    };
    check(FenceGuard::Below, 4, WriteResult::StaleToken).await;
    check(FenceGuard::Below, 5, WriteResult::StateMoved).await;
    check(FenceGuard::Below, 6, WriteResult::Written).await;
    check(FenceGuard::Equal, 4, WriteResult::StaleToken).await;
    check(FenceGuard::Equal, 5, WriteResult::Written).await;
    check(FenceGuard::Equal, 6, WriteResult::StateMoved).await;
}

pub(crate) async fn the_row_must_be_as_it_was_read(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let open = fixture.install("r-1", 1).await;
    let future = fixture.far_future().await;
    let check = async |what: &str, alter: fn(&mut Change)| {
        for counter in [1, 2] {
            let mut change = change_to(&open, fixture.token(counter), State::Unknown, future);
            alter(&mut change);
            assert_eq!(fixture.apply_one(change).await, WriteResult::StateMoved, "{what} {counter}");
            assert_eq!(fixture.row("r-1").await, open, "{what} {counter}");
        }
    };
    check("older version", |change| change.expected_version -= 1).await;
    check("newer version", |change| change.expected_version += 1).await;
    check("no open attempt", |change| change.expected_open_attempt = None).await;
    check("another open attempt", |change| change.expected_open_attempt = Some(attempt_id("other", 1))).await;
    let idle = fixture.write(change_to(&open, fixture.token(2), State::Unknown, future)).await;
    let mut late = change_to(&idle, fixture.token(2), State::Processing, future);
    late.expected_open_attempt = open.open_attempt;
    assert_eq!(fixture.apply_one(late).await, WriteResult::StateMoved);
    assert_eq!(fixture.row("r-1").await, idle);
}

pub(crate) async fn only_the_current_epoch_writes(fixture: &Fixture) {
    let intent = fixture.intent("r-1").await;
    let future = fixture.far_future().await;
    let with_epoch = |epoch| change_to(&intent, Token { epoch, counter: 1 }, State::Unknown, future);
    for epoch in [fixture.epoch - 1, fixture.epoch + 1, 0, -1] {
        assert_eq!(fixture.apply_one(with_epoch(epoch)).await, WriteResult::StaleToken, "epoch {epoch}");
    }
    let next = fixture.raise_epoch().await;
    assert!(next > fixture.epoch);
    assert_eq!(fixture.apply_one(with_epoch(fixture.epoch)).await, WriteResult::StaleToken);
    assert_eq!(fixture.row("r-1").await, intent);
    assert_eq!(fixture.apply_one(with_epoch(next)).await, WriteResult::Written);
}

pub(crate) async fn a_stale_token_is_named_before_anything_else(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let open = fixture.install("r-1", 5).await;
    for (guard, epoch) in [(FenceGuard::Below, fixture.epoch), (FenceGuard::Equal, fixture.epoch + 1)] {
        let token = Token { epoch, counter: 4 };
        let mut change = change_to(&open, token, State::Unknown, open.updated_at);
        change.fence_guard = guard;
        change.expected_version = 1;
        change.expected_open_attempt = None;
        assert_eq!(fixture.apply_one(change).await, WriteResult::StaleToken, "{guard:?}");
    }
    assert_eq!(fixture.row("r-1").await, open);
}

pub(crate) async fn a_new_epoch_beats_any_counter_of_an_old_one(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let open = fixture.install("r-1", 900).await;
    let next = fixture.raise_epoch().await;
    // The holder of the old generation can not finish, even though no later holder has written.
    assert_eq!(fixture.apply_one(fixture.succeeding(&open)).await, WriteResult::StaleToken);
    let token = Token { epoch: next, counter: 1 };
    let after = fixture.write(change_to(&open, token, State::Unknown, fixture.far_future().await)).await;
    assert_eq!((after.fence, after.version), (token, 3));
    assert_eq!(fixture.apply_one(fixture.succeeding(&open)).await, WriteResult::StaleToken);
    assert!(fixture.store.balances().await.unwrap().is_empty());
}

pub(crate) async fn an_unknown_intent_has_moved(fixture: &Fixture) {
    let known = fixture.intent("r-1").await;
    let mut change = change_to(&known, fixture.token(1), State::Canceled, known.updated_at);
    change.intent_id = super::fixture::intent_id("r-2");
    assert_eq!(fixture.apply_one(change).await, WriteResult::StateMoved);
}

pub(crate) async fn a_holder_that_was_taken_over_writes_nothing(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let first = fixture.install("r-1", 1).await;
    let mut takeover = fixture.installing(&first, 2, fixture.far_future().await);
    takeover.state = State::Unknown;
    let second = fixture.write(takeover).await;
    assert_eq!((second.holder_session, second.fence), (Some(session(2)), fixture.token(2)));
    let before = fixture.file("r-1").await;
    assert_eq!(fixture.apply_one(fixture.succeeding(&first)).await, WriteResult::StaleToken);
    let mut again = fixture.succeeding(&first);
    again.fence_guard = FenceGuard::Below;
    assert_eq!(fixture.apply_one(again).await, WriteResult::StaleToken);
    assert_eq!(fixture.file("r-1").await, before);
    assert!(fixture.store.balances().await.unwrap().is_empty());
    assert_eq!(fixture.payment("p-r-1").await.reserved_minor, 100);
}

pub(crate) async fn losers_leave_winners_alone(fixture: &Fixture) {
    let mut changes = Vec::new();
    for (id, counter) in [("r-5", 5), ("r-1", 1), ("r-4", 4), ("r-2", 2), ("r-3", 3)] {
        fixture.intent(id).await;
        fixture.install(id, counter).await;
        changes.push(fixture.succeeding(&fixture.row(id).await));
    }
    changes[0].token.counter = 1;
    changes[2].expected_version = 1;
    changes[4].expected_open_attempt = None;
    let expected = [
        WriteResult::StaleToken,
        WriteResult::Written,
        WriteResult::StateMoved,
        WriteResult::Written,
        WriteResult::StateMoved,
    ];
    assert_eq!(fixture.store.apply(&changes).await.unwrap(), expected);
    for (change, result) in changes.iter().zip(expected) {
        let story = fixture.store.story(&change.intent_id).await.unwrap().unwrap();
        let won = result == WriteResult::Written;
        assert_eq!(story.intent.state == State::Succeeded, won, "{}", change.intent_id);
        assert_eq!(story.transfers.len(), usize::from(won), "{}", change.intent_id);
        assert_eq!(story.attempts[0].outcome.is_some(), won, "{}", change.intent_id);
        assert_eq!((story.payment.refunded_minor, story.payment.reserved_minor), if won { (100, 0) } else { (0, 100) });
    }
}
