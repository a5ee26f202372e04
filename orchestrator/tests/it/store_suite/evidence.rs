//! Outcomes and breaks: appended once, never changed.

use super::fixture::{Fixture, accepted, change_to, euro, intent_id, outcome_of};
use jobs::refund::outcome::{Outcome, PspRefund, Rejection, RejectionClass};
use jobs::refund::state::{PspStatus, State};
use orchestrator::store::change::{NewBreak, NewOutcome};

pub(crate) async fn an_outcome_is_recorded_with_its_attempt(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let open = fixture.install("r-1", 1).await;
    let done = fixture.write(fixture.succeeding(&open)).await;
    assert_eq!((done.state, done.holder_session, done.open_attempt), (State::Succeeded, None, None));
    assert_eq!((done.psp_refund_ref.as_deref(), done.next_action_at), (Some("re_r-1"), None));
    let recorded = fixture.file("r-1").await.attempts.remove(0).outcome.unwrap();
    assert_eq!((recorded.outcome, recorded.duration_ms, recorded.late), (accepted(&open), 45_000, false));
}

pub(crate) async fn a_second_outcome_of_an_attempt_is_ignored(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let open = fixture.install("r-1", 1).await;
    let first = Outcome::Unknown { reason: "timeout".to_owned() };
    let mut unknown = change_to(&open, fixture.token(1), State::Unknown, fixture.far_future().await);
    // Also within one change: the first one stands.
    unknown.outcomes = vec![outcome_of(&open, first.clone()), outcome_of(&open, Outcome::Absent)];
    let unknown = fixture.write(unknown).await;
    let mut late = change_to(&unknown, fixture.token(2), State::Succeeded, unknown.updated_at);
    late.outcomes = vec![NewOutcome { late: true, ..outcome_of(&open, accepted(&open)) }];
    let after = fixture.write(late).await;
    assert_eq!(after.state, State::Succeeded);
    let attempts = fixture.file("r-1").await.attempts;
    assert_eq!(attempts.len(), 1);
    let recorded = attempts[0].outcome.as_ref().unwrap();
    assert_eq!((&recorded.outcome, recorded.late), (&first, false));
}

pub(crate) async fn one_change_settles_several_attempts(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let first = fixture.install("r-1", 1).await;
    let second = fixture.install("r-1", 2).await;
    let mut settling = change_to(&second, fixture.token(2), State::Unknown, fixture.far_future().await);
    settling.outcomes = vec![
        outcome_of(&second, Outcome::Absent),
        NewOutcome { late: true, ..outcome_of(&first, Outcome::Unknown { reason: "reset".to_owned() }) },
    ];
    fixture.write(settling).await;
    let attempts = fixture.file("r-1").await.attempts;
    let seen: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt.attempt_id, attempt.outcome.as_ref().map(|recorded| recorded.late)))
        .collect();
    assert_eq!(seen, [(first.open_attempt.unwrap(), Some(true)), (second.open_attempt.unwrap(), Some(false))]);
}

pub(crate) async fn every_outcome_reads_back_equal(fixture: &Fixture) {
    let refund = |status, reason: Option<&str>| PspRefund {
        psp_refund_ref: "re_1".to_owned(),
        status,
        amount: euro(9_007_199_254_740_993),
        reason: reason.map(ToOwned::to_owned),
    };
    let rejection = Rejection {
        code: "charge_disputed".to_owned(),
        message: "it's \"disputed\" \u{1f4b6} \\ \n".to_owned(),
        stored_under_key: true,
        class: RejectionClass::AlreadyRefunded,
    };
    let outcomes = [
        Outcome::Accepted { refund: refund(PspStatus::Processing, Some("pending")) },
        Outcome::Rejected { rejection },
        Outcome::NotExecuted { reason: "429".to_owned(), retry_after_ms: Some(u64::from(u32::MAX) + 1) },
        Outcome::NotExecuted { reason: String::new(), retry_after_ms: None },
        Outcome::Found { refunds: vec![refund(PspStatus::Succeeded, None), refund(PspStatus::Failed, Some("lost"))] },
        Outcome::Absent,
        Outcome::Unknown { reason: "reset by peer".to_owned() },
    ];
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let id = format!("r-{number}");
        fixture.intent(&id).await;
        let open = fixture.install(&id, 1).await;
        let mut change = change_to(&open, fixture.token(1), State::Unknown, fixture.far_future().await);
        change.outcomes = vec![outcome_of(&open, outcome.clone())];
        fixture.write(change).await;
        assert_eq!(fixture.file(&id).await.attempts.remove(0).outcome.unwrap().outcome, outcome);
    }
}

pub(crate) async fn breaks_are_kept_in_order(fixture: &Fixture) {
    let mut intent = fixture.intent("r-1").await;
    for round in 0..3 {
        let mut change = change_to(&intent, fixture.token(1), State::Processing, fixture.far_future().await);
        let new = |half: &str| NewBreak { class: "second_refund", detail: format!("re_{round}{half}") };
        change.breaks = vec![new("a"), new("b")];
        intent = fixture.write(change).await;
    }
    let story = fixture.store.story(&intent_id("r-1")).await.unwrap().unwrap();
    let details: Vec<&str> = story.breaks.iter().map(|found| found.detail.as_str()).collect();
    assert_eq!(details, ["re_0a", "re_0b", "re_1a", "re_1b", "re_2a", "re_2b"]);
    assert!(story.breaks.iter().all(|found| found.class == "second_refund"));
    assert!(story.breaks.windows(2).all(|pair| pair[0].break_id < pair[1].break_id));
}
