//! A payment's counters follow from the states of its intents and from nothing else.

use super::fixture::{Fixture, attempt_id, change_to, euro, intent_id, new_attempt, new_intent, new_payment, session};
use chrono::{DateTime, Utc};
use jobs::ids::Token;
use jobs::refund::intent::Intent;
use jobs::refund::state::{CountsAs, State};
use orchestrator::store::change::{Change, WriteResult};
use orchestrator::store::submit::SubmitResult;

/// A plain change, with a call opened where the state asks for one.
fn moving(intent: &Intent, token: Token, state: State, at: DateTime<Utc>) -> Change {
    let mut change = change_to(intent, token, state, at);
    if state == State::Sending {
        let attempt = attempt_id(intent.intent_id.as_str(), intent.version + 1);
        change.holder_session = Some(session(token.counter));
        change.open_attempt = Some(attempt);
        change.attempt = Some(new_attempt(attempt, at));
    }
    change
}

const fn counted(state: State) -> (i64, i64) {
    match state.counts_as() {
        CountsAs::Reserved => (100, 0),
        CountsAs::Refunded => (0, 100),
        CountsAs::Nothing => (0, 0),
    }
}

pub(crate) async fn counters_follow_states_for_every_pair(fixture: &Fixture) {
    let future = fixture.far_future().await;
    let pairs: Vec<(State, State, String)> = State::ALL
        .into_iter()
        .flat_map(|from| State::ALL.into_iter().map(move |to| (from, to, format!("{from}-{to}"))))
        .collect();
    let payments: Vec<_> = pairs.iter().map(|(_, _, id)| new_payment(id, euro(100))).collect();
    fixture.store.import_payments(&payments).await.unwrap();
    let intents: Vec<_> = pairs.iter().map(|(_, _, id)| new_intent(id, id, euro(100))).collect();
    let created = fixture.store.submit(&intents).await.unwrap();
    assert!(created.iter().all(|result| matches!(result, SubmitResult::Created(_))));

    for (hop, counter) in [(0, 1), (1, 1), (1, 2)] {
        let ids: Vec<_> = pairs.iter().map(|(_, _, id)| intent_id(id)).collect();
        let files = fixture.store.load(&ids).await.unwrap().files;
        let state_of = |pair: &(State, State, String)| if hop == 0 { pair.0 } else { pair.1 };
        let changes: Vec<Change> = pairs
            .iter()
            .zip(&files)
            .map(|(pair, file)| moving(&file.intent, fixture.token(counter), state_of(pair), future))
            .collect();
        let results = fixture.store.apply(&changes).await.unwrap();
        assert!(results.iter().all(|result| *result == WriteResult::Written), "{results:?}");
        for pair in &pairs {
            let payment = fixture.payment(&pair.2).await;
            assert_eq!(
                (payment.reserved_minor, payment.refunded_minor),
                counted(state_of(pair)),
                "{} hop {hop}",
                pair.2
            );
        }
    }
}

pub(crate) async fn a_batch_sums_its_winners_per_payment(fixture: &Fixture) {
    fixture.pay("p-1", 10_000).await;
    fixture.pay("p-2", 10_000).await;
    let plan = [
        ("r-1", "p-1", 1, State::Succeeded, true),
        ("r-2", "p-1", 20, State::Succeeded, true),
        ("r-3", "p-1", 300, State::Failed, true),
        ("r-4", "p-1", 4_000, State::Succeeded, false),
        ("r-5", "p-2", 500, State::Canceled, true),
        ("r-6", "p-2", 6_000, State::Unknown, true),
    ];
    let mut changes = Vec::new();
    for (id, payment, minor, state, wins) in plan {
        let intent = fixture.created(new_intent(id, payment, euro(minor))).await;
        let mut change = moving(&intent, fixture.token(1), state, fixture.far_future().await);
        change.expected_version += i64::from(!wins);
        changes.push(change);
    }
    let results = fixture.store.apply(&changes).await.unwrap();
    let won: Vec<bool> = results.iter().map(|result| *result == WriteResult::Written).collect();
    assert_eq!(won, plan.map(|(_, _, _, _, wins)| wins));
    let first = fixture.payment("p-1").await;
    assert_eq!((first.reserved_minor, first.refunded_minor), (4_000, 21));
    let second = fixture.payment("p-2").await;
    assert_eq!((second.reserved_minor, second.refunded_minor), (6_000, 0));
}
