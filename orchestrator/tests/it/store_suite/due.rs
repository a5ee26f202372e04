//! What a worker is told to look at.

use super::fixture::{ACCOUNT, Fixture, PSP, change_to, due_query, euro, intent_id, new_intent, new_payment, session};
use chrono::TimeDelta;
use jobs::refund::intent::MACHINE_VERSION;
use jobs::refund::state::State;
use orchestrator::store::DueQuery;
use orchestrator::store::change::InboxApplied;

pub(crate) async fn creates_are_due_only_where_allowed(fixture: &Fixture) {
    fixture.intent("r-create").await;
    let unknown = fixture.intent("r-lookup").await;
    let far_past = fixture.far_past().await - TimeDelta::days(1);
    fixture.write(change_to(&unknown, fixture.token(1), State::Unknown, far_past)).await;
    fixture.intent("r-told").await;
    fixture.tell("r-told", "s-1").await;
    assert_eq!(sorted(fixture.due(&[], true).await), ["r-create", "r-lookup", "r-told"]);
    assert_eq!(sorted(fixture.due(&[], false).await), ["r-lookup", "r-told"]);
}

pub(crate) async fn what_lies_in_the_future_is_not_due(fixture: &Fixture) {
    fixture.pay("p-1", 1_000).await;
    let mut later = new_intent("r-1", "p-1", euro(100));
    later.due_at = Some(fixture.far_future().await);
    let intent = fixture.created(later).await;
    assert!(fixture.due(&[], true).await.is_empty());
    let future = fixture.far_future().await;
    let processing = fixture.write(change_to(&intent, fixture.token(1), State::Processing, future)).await;
    assert!(fixture.due(&[], true).await.is_empty());
    let past = fixture.far_past().await;
    let processing = fixture.write(change_to(&processing, fixture.token(1), State::Processing, past)).await;
    assert_eq!(fixture.due(&[], true).await, ["r-1"]);
    fixture.write(change_to(&processing, fixture.token(1), State::NeedsReview, past)).await;
    assert!(fixture.due(&[], true).await.is_empty());
}

pub(crate) async fn an_open_step_is_due_when_its_session_is_not_live(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let open = fixture.install("r-1", 1).await;
    assert!(fixture.due(&[session(1), session(2)], true).await.is_empty());
    for creates_allowed in [true, false] {
        assert_eq!(fixture.due(&[], creates_allowed).await, ["r-1"]);
        assert_eq!(fixture.due(&[session(2), session(3)], creates_allowed).await, ["r-1"]);
    }
    // Past the hold maximum it is due whoever lives.
    let mut overdue = fixture.installing(&open, 2, fixture.far_past().await);
    overdue.state = State::Unknown;
    fixture.write(overdue).await;
    assert_eq!(fixture.due(&[session(2)], true).await, ["r-1"]);
    fixture.write(fixture.succeeding(&fixture.row("r-1").await)).await;
    assert!(fixture.due(&[], true).await.is_empty());
}

pub(crate) async fn a_message_makes_due_only_while_nobody_holds(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let open = fixture.install("r-1", 1).await;
    let inbox_id = fixture.tell("r-1", "s-1").await;
    assert!(fixture.due(&[session(1)], true).await.is_empty());
    assert_eq!(fixture.due(&[session(2)], true).await, ["r-1"]);
    // The holder has gone on without reading it.
    let future = fixture.far_future().await;
    let idle = fixture.write(change_to(&open, fixture.token(1), State::Unknown, future)).await;
    assert_eq!(fixture.due(&[session(1)], false).await, ["r-1"]);
    let mut reading = change_to(&idle, fixture.token(1), State::Unknown, future);
    reading.inbox_applied = vec![InboxApplied { inbox_id, refused_because: None }];
    fixture.write(reading).await;
    assert!(fixture.due(&[session(1)], true).await.is_empty());
}

pub(crate) async fn a_message_wakes_a_final_intent(fixture: &Fixture) {
    fixture.intent("r-1").await;
    fixture.succeed("r-1", 1).await;
    assert!(fixture.due(&[], true).await.is_empty());
    fixture.tell("r-1", "s-1").await;
    assert_eq!(fixture.due(&[session(1)], true).await, ["r-1"]);
    assert_eq!(fixture.due(&[], false).await, ["r-1"]);
}

pub(crate) async fn oldest_comes_first_and_the_limit_holds(fixture: &Fixture) {
    let past = fixture.far_past().await;
    let order = ["r-d", "r-a", "r-e", "r-c", "r-b"];
    fixture.pay("p-1", 1_000).await;
    for (hours, id) in order.iter().enumerate().rev() {
        let mut new = new_intent(id, "p-1", euro(1));
        new.due_at = Some(past + TimeDelta::hours(i64::try_from(hours).unwrap()));
        let intent = fixture.created(new).await;
        if hours % 2 == 0 {
            // Lookups and creates share one queue.
            fixture.write(change_to(&intent, fixture.token(1), State::Unknown, intent.next_action_at.unwrap())).await;
        }
    }
    for limit in 1..=6 {
        let due = fixture.store.due(&DueQuery { limit, ..due_query() }).await.unwrap();
        let due: Vec<&str> = due.iter().map(jobs::ids::IntentId::as_str).collect();
        assert_eq!(due, order[..limit.min(5)], "limit {limit}");
    }
}

pub(crate) async fn other_providers_accounts_and_machines_are_left_alone(fixture: &Fixture) {
    let due_at = Some(fixture.far_past().await);
    for (id, psp, account) in [("r-1", PSP, ACCOUNT), ("r-2", "other", ACCOUNT), ("r-3", PSP, "other")] {
        let payment = format!("p-{id}");
        let mut paid = new_payment(&payment, euro(1_000));
        paid.psp = psp.to_owned();
        paid.psp_account = account.to_owned();
        fixture.import(&paid).await;
        for kind in ["create", "told", "open"] {
            let mut new = new_intent(&format!("{id}-{kind}"), &payment, euro(1));
            new.psp = psp.to_owned();
            new.psp_account = account.to_owned();
            new.due_at = due_at;
            fixture.created(new).await;
        }
        fixture.tell(&format!("{id}-told"), &format!("s-{id}")).await;
        fixture.install(&format!("{id}-open"), 1).await;
    }
    let due = async |query: DueQuery| {
        let ids = fixture.store.due(&query).await.unwrap();
        sorted(ids.iter().map(ToString::to_string).collect())
    };
    assert_eq!(due(due_query()).await, ["r-1-create", "r-1-open", "r-1-told"]);
    assert_eq!(due(DueQuery { psp: "other".to_owned(), ..due_query() }).await, ["r-2-create", "r-2-open", "r-2-told"]);
    assert_eq!(
        due(DueQuery { psp_account: "other".to_owned(), ..due_query() }).await,
        ["r-3-create", "r-3-open", "r-3-told"]
    );
    assert!(due(DueQuery { machine_version: MACHINE_VERSION + 1, ..due_query() }).await.is_empty());
    assert!(fixture.store.load(&[intent_id("r-1-open")]).await.unwrap().files[0].intent.open_attempt.is_some());
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}
