//! What others had to say, read by the holder.

use crate::build::*;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::inbox::read;
use jobs::refund::intent::NextAction;
use jobs::refund::outcome::Outcome::Absent;
use jobs::refund::plan::Circumstances;
use jobs::refund::state::{
    PspStatus::{Failed, Processing, Succeeded},
    State,
};

/// Reads the inbox at 1000 s. `refused` holds a part of each reading's reason, or nothing where it took effect.
fn check(refund: &Refund, expected: &str, refused: &[&str]) {
    check_in(refund, &stripe(), circumstances(1_000), expected, refused);
}

fn check_in(
    refund: &Refund,
    capabilities: &Capabilities,
    circumstances: Circumstances,
    expected: &str,
    refused: &[&str],
) {
    let written = read(&refund.file, capabilities, circumstances);
    assert_eq!(decision_text(&written.decision), expected, "{:#?}", refund.file);
    let reasons: Vec<String> =
        written.readings.iter().map(|reading| reading.refused_because.clone().unwrap_or_default()).collect();
    assert_eq!(reasons.len(), refused.len(), "{reasons:?}");
    for (reason, part) in reasons.iter().zip(refused) {
        assert!(reason.contains(part) && reason.is_empty() == part.is_empty(), "{reason:?} should say {part:?}");
    }
}

/// In each state as it would be while nobody has a call open; `sending` with its call abandoned.
fn in_state(state: State) -> Refund {
    let refund = refund_in(state);
    match state {
        State::Recorded => refund.create(0, not_executed()).next(NextAction::Create, 1_500),
        State::Sending => refund.create(0, None).open(),
        State::Unknown | State::NeedsReview => refund.create(0, None).lookup(70, unknown()),
        State::Processing | State::Succeeded => refund.known_as("re_1").create(0, None).lookup(70, found(Succeeded)),
        State::Failed => refund.create(0, None).lookup(360, Absent).create(400, rejected_stored()),
        State::Canceled => refund,
        State::Reversed => {
            refund.known_as("re_1").create(0, None).lookup(70, found(Succeeded)).lookup(80, found(Failed))
        }
    }
}

#[test]
fn a_cancel_is_legal_only_while_recorded() {
    for (state, expected, refused) in [
        (State::Recorded, "canceled", ""),
        (State::Sending, "unknown lookup@1000 rung 1", "may have executed"),
        (State::Unknown, "unknown lookup@0", "may have executed"),
        (State::Processing, "processing lookup@0", "may have executed"),
        (State::Succeeded, "succeeded", "succeeded already"),
        (State::Failed, "failed (no reason)", "failed already"),
        (State::Canceled, "canceled", "canceled already"),
        (State::Reversed, "reversed", "reversed already"),
        (State::NeedsReview, "needs_review (parked)", "may have executed"),
    ] {
        check(&in_state(state).cancel(), expected, &[refused]);
    }
    check(&in_state(State::Recorded).cancel().cancel(), "canceled", &["", "canceled already"]);
    check(&refund().next(NextAction::Lookup, 0).cancel(), "recorded lookup@1000", &["looked up first"]);
    let restored = Circumstances { timeline: 2, ..circumstances(1_000) };
    check_in(&refund().cancel(), &stripe(), restored, "recorded lookup@1000", &["looked up first"]);
}

#[test]
fn a_replay_looks_now_where_a_lookup_can_tell_something() {
    for (state, expected, refused) in [
        (State::Recorded, "recorded create@1500", "it is recorded"),
        // Taken over by the same write, so it is unknown by then.
        (State::Sending, "unknown lookup@1000 rung 1", ""),
        (State::Unknown, "unknown lookup@1000", ""),
        (State::Processing, "processing lookup@1000", ""),
        (State::Succeeded, "succeeded", "it is succeeded"),
        (State::Failed, "failed (no reason)", "it is failed"),
        (State::Canceled, "canceled", "it is canceled"),
        (State::Reversed, "reversed", "it is reversed"),
        (State::NeedsReview, "needs_review lookup@1000 (parked)", ""),
    ] {
        check(&in_state(state).replay(), expected, &[refused]);
    }
    // It stands in for the planned look, so people do not use up the ladder.
    check(
        &in_state(State::Unknown).rung(6).next(NextAction::Lookup, 2_000).replay().replay(),
        "unknown lookup@1000 rung 5",
        &["", ""],
    );
    // A planned resend is looked up first.
    check(&in_state(State::Unknown).next(NextAction::Create, 900).replay(), "unknown lookup@1000", &[""]);
}

#[test]
fn a_notice_makes_it_due_and_proves_nothing() {
    for (state, expected) in [
        (State::Recorded, "recorded lookup@1000"),
        (State::Sending, "unknown lookup@1000 rung 1"),
        (State::Unknown, "unknown lookup@1000"),
        (State::Processing, "processing lookup@1000"),
        (State::Succeeded, "succeeded lookup@1000"),
        (State::Failed, "failed lookup@1000 (no reason)"),
        (State::Canceled, "canceled lookup@1000"),
        (State::Reversed, "reversed lookup@1000"),
        (State::NeedsReview, "needs_review lookup@1000 (parked)"),
    ] {
        check(&in_state(state).notice(), expected, &[""]);
    }
    check(&in_state(State::Succeeded).rung(12).notice(), "succeeded lookup@1000", &[""]);
    check_in(
        &in_state(State::Succeeded).notice(),
        &without_lookup(),
        circumstances(1_000),
        "succeeded",
        &["can not be asked"],
    );
}

#[test]
fn a_late_success_counts_in_every_state_once() {
    for (state, expected) in [
        (State::Sending, "succeeded Post"),
        (State::Unknown, "succeeded Post"),
        (State::Processing, "processing lookup@1000"),
        (State::Succeeded, "succeeded"),
        (State::Failed, "succeeded PostAndBreak !status"),
        (State::Reversed, "reversed lookup@1000"),
        (State::NeedsReview, "succeeded Post"),
    ] {
        let refund = in_state(state).late(1, accepted(Succeeded));
        let written = read(&refund.file, &stripe(), circumstances(1_000));
        check(&refund, expected, &[""]);
        assert_eq!(written.late_outcomes.len(), 1);
        assert_eq!(written.late_outcomes[0].attempt_id, attempt_id(1));
    }
    check(
        &in_state(State::Succeeded).late(1, accepted(Succeeded)).late(1, accepted(Succeeded)),
        "succeeded",
        &["", "outcome already"],
    );
    check(
        &refund_in(State::Succeeded).create(0, accepted(Succeeded)).late(1, unknown()),
        "succeeded",
        &["outcome already"],
    );
    // What posts ends the write; the rest is read by the next step.
    check(&in_state(State::Unknown).late(1, accepted(Succeeded)).cancel(), "succeeded Post", &[""]);
    check(&in_state(State::Unknown).cancel().late(1, accepted(Succeeded)), "succeeded Post", &[""]);
}

#[test]
fn an_older_view_never_sets_a_later_one_back() {
    // The lookup showed it after the create had started; the create's own answer arrives last.
    for (state, late, expected) in [
        (State::Succeeded, accepted(Processing), "succeeded"),
        (State::Succeeded, accepted(Failed), "succeeded lookup@1000"),
        (State::Reversed, accepted(Failed), "reversed"),
        (State::Reversed, accepted(Processing), "reversed lookup@1000"),
    ] {
        check(&in_state(state).late(1, late), expected, &[""]);
    }
    let failed = refund_in(State::Failed).known_as("re_1").create(0, None).lookup(70, found(Failed));
    check(&failed.late(1, accepted(Processing)), "failed lookup@1000 (no reason)", &[""]);
    let reading =
        refund_in(State::Succeeded).known_as("re_1").create(0, unknown()).lookup(70, None).lookup(80, found(Succeeded));
    check(&reading.clone().late(2, found(Failed)), "succeeded lookup@1000", &[""]);
    check(&reading.late(2, Absent), "succeeded", &[""]);
    let no_lookup = refund_in(State::Succeeded).known_as("re_1").create(0, None).create(60, accepted(Succeeded));
    check_in(&no_lookup.late(1, accepted(Failed)), &without_lookup(), circumstances(1_000), "succeeded !status", &[""]);
}

#[test]
fn a_late_answer_that_is_not_a_success_settles_its_own_attempt() {
    let sending = || in_state(State::Sending);
    let resending = || refund_in(State::Sending).create(0, None).lookup(360, Absent).create(400, None).open();
    for (refund, expected) in [
        (sending().late(1, not_executed()), "recorded create@1001"),
        (sending().late(1, unknown()), "unknown lookup@1000 rung 1"),
        (sending().late(1, rejected_stored()), "failed (disputed)"),
        (sending().late(1, key_reused()), "needs_review (key_reused)"),
        (sending().late(1, already_refunded()), "unknown lookup@1000 rung 1"),
        // The other create is open still.
        (resending().late(1, not_executed()), "unknown lookup@1001"),
        (resending().late(1, rejected_stored()), "unknown lookup@1000 rung 1"),
        (resending().late(1, not_executed()).late(3, not_executed()), "recorded create@1005"),
        (resending().late(3, rejected_stored()), "failed (disputed)"),
        (in_state(State::Unknown).late(1, not_executed()), "recorded create@1001"),
        (in_state(State::Unknown).late(1, rejected_not_stored()), "failed (low_balance)"),
        (in_state(State::Processing).late(1, not_executed()), "processing lookup@0"),
        (in_state(State::Succeeded).late(1, not_executed()), "succeeded"),
        (in_state(State::Succeeded).late(1, unknown()), "succeeded"),
        (in_state(State::Succeeded).late(1, key_reused()), "succeeded !status"),
        (in_state(State::Failed).late(1, not_executed()), "failed (no reason)"),
        (in_state(State::Failed).late(1, rejected_stored()), "failed (no reason)"),
        (in_state(State::NeedsReview).late(1, not_executed()), "needs_review (parked)"),
        (in_state(State::NeedsReview).late(1, rejected_stored()), "failed (disputed)"),
        (
            in_state(State::NeedsReview).next(NextAction::Lookup, 900).late(1, unknown()),
            "needs_review lookup@900 (parked)",
        ),
    ] {
        let refused = vec![""; refund.file.unread.len()];
        check(&refund, expected, &refused);
    }
    // Parked over what the provider showed: a refusal does not make that go away.
    let two = found_all(&[shown("re_1", 2285, "EUR", Succeeded), shown("re_2", 2285, "EUR", Succeeded)]);
    let several = refund_in(State::NeedsReview).create(0, None).lookup(70, two);
    check(&several.clone().late(1, rejected_stored()), "needs_review !status (parked)", &[""]);
    check(&several.late(1, accepted(Succeeded)), "needs_review lookup@1000 (parked)", &[""]);
}

#[test]
fn a_late_answer_to_an_attempt_nobody_knows_is_refused_but_looked_into() {
    for (refund, expected) in [
        (in_state(State::Recorded).late(9, accepted(Succeeded)), "recorded lookup@1000"),
        (in_state(State::Recorded).late(9, not_executed()), "recorded create@1500"),
        (in_state(State::Canceled).late(9, found(Succeeded)), "canceled lookup@1000"),
        (in_state(State::Succeeded).late(9, rejected_stored()), "succeeded"),
    ] {
        check(&refund, expected, &["no attempt"]);
    }
}

#[test]
fn an_abandoned_lookup_is_repeated_at_once() {
    let abandoned = |state| refund_in(state).create(0, unknown()).lookup(990, None).open();
    check(&abandoned(State::Unknown).cancel(), "unknown lookup@1000", &["may have executed"]);
    check(&abandoned(State::Succeeded).cancel(), "succeeded lookup@1000", &["already"]);
    check(&abandoned(State::Unknown).late(2, Absent), "unknown create@1000", &[""]);
    check(&abandoned(State::NeedsReview).late(2, unknown()).replay(), "needs_review lookup@1000 (parked)", &["", ""]);
    check(&abandoned(State::NeedsReview).replay().late(2, unknown()), "needs_review lookup@1000 (parked)", &["", ""]);
}
