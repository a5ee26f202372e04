//! How much waits, and since when.

use super::fixture::{Fixture, change_to, euro, new_intent, new_payment};
use jobs::refund::state::State;
use orchestrator::store::read::Backlog;

pub(crate) async fn states_are_counted_with_their_oldest(fixture: &Fixture) {
    let mut elsewhere = new_payment("p-2", euro(1_000));
    elsewhere.psp = "other".to_owned();
    fixture.import(&elsewhere).await;
    let mut other = new_intent("r-other", "p-2", euro(1));
    other.psp = "other".to_owned();
    let other = fixture.created(other).await;
    let oldest = fixture.intent("r-1").await;
    fixture.intent("r-2").await;
    let parked = fixture.intent("r-3").await;
    fixture.write(change_to(&parked, fixture.token(1), State::NeedsReview, parked.updated_at)).await;
    let open = fixture.intent("r-4").await;
    fixture.install("r-4", 1).await;
    let done = fixture.intent("r-5").await;
    fixture.succeed("r-5", 1).await;

    let mut backlog = fixture.store.backlog().await.unwrap();
    assert_eq!((backlog.unknown_machine_version, &backlog.without_next_action), (0, &None));
    backlog.states.sort_by(|a, b| (a.state, &a.psp).cmp(&(b.state, &b.psp)));
    let seen: Vec<_> = backlog
        .states
        .iter()
        .filter(|count| !count.state.is_final())
        .map(|count| (count.state, count.psp.as_str(), count.count, count.oldest_at.unwrap()))
        .collect();
    assert_eq!(
        seen,
        [
            (State::Recorded, "acme", 2, oldest.created_at),
            (State::Recorded, "other", 1, other.created_at),
            (State::Sending, "acme", 1, open.created_at),
            (State::NeedsReview, "acme", 1, parked.created_at),
        ]
    );
    // Finals may be left out, since they grow without end; where they are counted, they are counted right.
    for count in backlog.states.iter().filter(|count| count.state.is_final()) {
        assert_eq!((count.state, count.count, count.oldest_at), (State::Succeeded, 1, Some(done.created_at)));
    }
}

pub(crate) async fn an_empty_store_has_no_backlog(fixture: &Fixture) {
    assert_eq!(fixture.store.backlog().await.unwrap(), Backlog::default());
    assert!(fixture.store.balances().await.unwrap().is_empty());
    assert!(fixture.due(&[], true).await.is_empty());
}
