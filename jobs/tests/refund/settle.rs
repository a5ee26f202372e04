//! What an answer makes of its refund.

use crate::build::*;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::decision::Decision;
use jobs::refund::facts::Facts;
use jobs::refund::intent::NextAction;
use jobs::refund::outcome::Outcome::{self, Absent};
use jobs::refund::settle::{Settling, settle};
use jobs::refund::state::{
    PspStatus::{Canceled, Failed, Processing, Succeeded},
    State,
};

fn settled(refund: &Refund, outcome: &Outcome, capabilities: &Capabilities, seconds: i64) -> Decision {
    let (attempt, earlier) = refund.file.attempts.split_last().unwrap();
    let learned = [(attempt, outcome)];
    let facts = Facts::new(earlier, &learned);
    let intent = &refund.file.intent;
    settle(
        Settling { intent, attempt, outcome, facts: &facts, capabilities, now: now(seconds) },
        Decision::unchanged(intent),
    )
}

/// The last attempt of the refund is answered now.
fn check(refund: Refund, outcome: Outcome, seconds: i64, expected: &str) {
    check_at(refund, outcome, &stripe(), seconds, expected);
}

fn check_at(refund: Refund, outcome: Outcome, capabilities: &Capabilities, seconds: i64, expected: &str) {
    let refund = refund.open();
    let decision = settled(&refund, &outcome, capabilities, seconds);
    assert_eq!(decision_text(&decision), expected, "{outcome:?} for {:#?}", refund.file);
}

fn sending() -> Refund {
    refund_in(State::Sending).create(0, None)
}

/// A create timed out and is being looked up from `started` on.
fn looking(started: i64) -> Refund {
    refund_in(State::Unknown).create(0, unknown()).lookup(started, None)
}

/// A create timed out, was proved absent, and is sent again at 400.
fn resending() -> Refund {
    refund_in(State::Sending).create(0, unknown()).lookup(360, Absent).create(400, None)
}

#[test]
fn a_create_is_settled_by_its_answer() {
    for (outcome, expected) in [
        (accepted(Succeeded), "succeeded Post"),
        (accepted(Processing), "processing lookup@86401 rung 1"),
        (accepted(Failed), "failed (refused by the provider)"),
        (accepted(Canceled), "canceled"),
        (rejected_stored(), "failed (disputed)"),
        (rejected_not_stored(), "failed (low_balance)"),
        (not_executed(), "recorded create@2"),
        // A timeout is followed by a lookup at once.
        (unknown(), "unknown lookup@1 rung 1"),
        (already_refunded(), "unknown lookup@1 rung 1"),
        (key_reused(), "needs_review (key_reused)"),
    ] {
        check(sending(), outcome, 1, expected);
    }
}

#[test]
fn not_executed_backs_off_by_its_ladder_honours_retry_after_and_never_parks() {
    for (earlier, delay) in [(0, 1), (1, 5), (2, 30), (3, 120), (4, 600), (5, 600), (50, 600)] {
        let mut refund = refund_in(State::Sending);
        for number in 0..earlier {
            refund = refund.create(number, not_executed());
        }
        check(refund.create(100, None), not_executed(), 100, &format!("recorded create@{}", 100 + delay));
    }
    for (retry_after_ms, expected) in [(0, 101), (500, 101), (20_000, 120), (999_999_999, 100 + HOUR), (u64::MAX, 101)]
    {
        check(
            refund_in(State::Sending).create(100, None),
            not_executed_for(retry_after_ms),
            100,
            &format!("recorded create@{expected}"),
        );
    }
    check(looking(70), not_executed(), 70, "unknown lookup@71");
    check(looking(70).rung(12), not_executed_for(7_000), 70, "unknown lookup@77 rung 12");
    check(refund_in(State::NeedsReview).lookup(70, None), not_executed(), 70, "needs_review lookup@71 (parked)");
    check(refund_in(State::Succeeded).lookup(70, None), not_executed(), 70, "succeeded lookup@71");
}

#[test]
fn not_executed_settles_only_its_own_create() {
    check(resending(), not_executed(), 400, "unknown lookup@401");
    // Lookups between creates do not start the ladder anew.
    let again = refund_in(State::Sending)
        .create(0, unknown())
        .lookup(360, Absent)
        .create(400, not_executed())
        .lookup(401, Absent);
    check(again.create(401, None), not_executed(), 401, "unknown lookup@406");
    let all = refund_in(State::Sending).create(0, not_executed()).create(10, None);
    check(all, not_executed(), 10, "recorded create@15");
}

#[test]
fn a_refusal_ends_a_refund_only_when_no_other_create_is_open() {
    let other_open = || refund_in(State::Sending).create(0, unknown()).create(30, None);
    check(other_open(), rejected_stored(), 31, "unknown lookup@31 rung 1");
    check(other_open(), rejected_not_stored(), 31, "unknown lookup@31 rung 1");
    // Absent by the rule, and the refusal is what the key answers from now on.
    check(resending(), rejected_stored(), 401, "failed (disputed)");
    // Not kept under the key: the first create could still execute while the key lives.
    check(resending(), rejected_not_stored(), 401, "unknown lookup@401 rung 1");
    let refused_twice = refund_in(State::Sending).create(0, rejected_stored()).create(30, None);
    check(refused_twice, rejected_not_stored(), 31, "failed (low_balance)");
    check(
        refund_in(State::Sending).create(0, not_executed()).create(30, None),
        rejected_not_stored(),
        31,
        "failed (low_balance)",
    );
}

#[test]
fn a_refusal_not_kept_under_the_key_waits_until_the_key_has_expired_and_one_more_lookup_is_absent() {
    let refused = |started| {
        refund_in(State::Unknown)
            .create(0, unknown())
            .lookup(360, Absent)
            .create(400, rejected_not_stored())
            .lookup(started, None)
    };
    for (started, expected) in [
        (401, "unknown lookup@402 rung 1".to_owned()),
        (760, format!("unknown lookup@{DAY}")),
        (DAY - 1, format!("unknown lookup@{DAY}")),
        (DAY, "failed (low_balance)".to_owned()),
    ] {
        check(refused(started), Absent, started + 1, &expected);
    }
    check(refused(DAY), found(Succeeded), DAY, "succeeded Post");
    check(refused(DAY), unknown(), DAY, &format!("unknown lookup@{DAY} rung 1"));
}

#[test]
fn already_refunded_is_looked_up_and_may_be_ours_but_is_never_sent_again() {
    let refunded = |started| refund_in(State::Unknown).create(0, already_refunded()).lookup(started, None);
    check(refunded(1), found(Succeeded), 2, "succeeded Post");
    check(refunded(1), Absent, 2, "unknown lookup@2 rung 1");
    check(refunded(359), Absent, 359, "unknown lookup@359 rung 1");
    check(refunded(360), Absent, 361, "failed (already_refunded)");
    let after_timeout =
        refund_in(State::Unknown).create(0, unknown()).lookup(360, Absent).create(400, already_refunded());
    check(after_timeout.clone().lookup(500, None), Absent, 500, "unknown lookup@500 rung 1");
    check(after_timeout.lookup(760, None), Absent, 760, "failed (already_refunded)");
}

#[test]
fn found_means_exactly_one_with_our_amount_and_currency() {
    let one = |minor, currency| found_all(&[shown("re_1", minor, currency, Succeeded)]);
    let two = found_all(&[shown("re_1", 2285, "EUR", Succeeded), shown("re_2", 2285, "EUR", Failed)]);
    for (outcome, expected) in [
        (one(2285, "EUR"), "succeeded Post"),
        (one(2284, "EUR"), "needs_review !amount (other_amount)"),
        (one(2285, "GBP"), "needs_review !currency (other_currency)"),
        (two.clone(), "needs_review !duplicate_at_psp (several_found)"),
        (found(Failed), "failed (refused by the provider)"),
        (found(Canceled), "canceled"),
        (found(Processing), "processing lookup@86470 rung 1"),
    ] {
        check(looking(60), outcome, 70, expected);
    }
    let other = settled(&looking(60).open(), &one(2285, "GBP"), &stripe(), 70);
    assert_eq!(other.psp_refund_ref.as_deref(), Some("re_1"), "the provider's refund is kept for the person who looks");
    check(
        sending(),
        Outcome::Accepted { refund: shown("re_9", 1, "EUR", Succeeded) },
        1,
        "needs_review !amount (other_amount)",
    );

    let posted = || refund_in(State::Succeeded).known_as("re_1").create(0, accepted(Succeeded)).lookup(99, None);
    check(posted(), two, 99, "succeeded !duplicate_at_psp");
    check(posted(), found_all(&[shown("re_2", 2285, "EUR", Succeeded)]), 99, "succeeded !duplicate_at_psp");
    check(posted(), one(2284, "EUR"), 99, "succeeded !amount");
    let processing = refund_in(State::Processing).known_as("re_1").create(0, accepted(Processing)).lookup(99, None);
    check(
        processing,
        found_all(&[shown("re_2", 2285, "EUR", Succeeded)]),
        99,
        "needs_review !duplicate_at_psp (several_found)",
    );
}

#[test]
fn absence_before_its_time_is_no_proof() {
    for (started, rung, expected) in [
        (5, 1, "unknown lookup@10 rung 2"),
        (61, 1, "unknown lookup@66 rung 2"),
        // The next look is pulled forward to the first moment that proves.
        (100, 4, "unknown lookup@360 rung 5"),
        (359, 4, "unknown lookup@360 rung 5"),
        (360, 4, "unknown create@360 rung 4"),
        (360, 12, "unknown create@360 rung 12"),
    ] {
        check(looking(started).rung(rung), Absent, started, expected);
    }
    check(looking(23 * HOUR), Absent, 23 * HOUR, "needs_review (absent_no_resend)");
    check_at(looking(400), Absent, &without_key(), 400, "needs_review (absent_no_resend)");
}

#[test]
fn an_unknown_climbs_its_ladder_and_is_parked_at_its_end() {
    let ladder = [0, 5, 30, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, DAY, DAY, DAY, DAY];
    for (rung, delay) in (0i32..).zip(ladder) {
        let expected = format!("unknown lookup@{} rung {}", 1_000 + delay, rung + 1);
        check(looking(1_000).rung(rung), unknown(), 1_000, &expected);
    }
    check(looking(1_000).rung(12), unknown(), 1_000, "needs_review (ladder_ended)");
}

#[test]
fn processing_climbs_its_own_ladder() {
    let processing =
        |rung| refund_in(State::Processing).known_as("re_1").create(0, accepted(Processing)).lookup(0, None).rung(rung);
    for outcome in [found(Processing), Absent, unknown()] {
        for rung in [0, 1, 29] {
            check(processing(rung), outcome.clone(), 0, &format!("processing lookup@{DAY} rung {}", rung + 1));
        }
        check(processing(30), outcome, 0, "needs_review (ladder_ended)");
    }
    check(processing(3), found(Succeeded), 0, "succeeded Post");
    check(processing(3), found(Failed), 0, "failed (refused by the provider)");
}

#[test]
fn a_final_state_moves_only_on_proof() {
    let looked_at = |state| refund_in(state).known_as("re_1").create(0, accepted(Succeeded)).lookup(DAY, None);
    for (state, outcome, expected) in [
        (State::Succeeded, found(Failed), "reversed Reverse"),
        (State::Succeeded, found(Canceled), "reversed Reverse"),
        (State::Succeeded, found(Processing), "succeeded"),
        (State::Succeeded, found(Succeeded), "succeeded"),
        (State::Succeeded, Absent, "succeeded !missing_at_psp"),
        (State::Failed, found(Succeeded), "succeeded PostAndBreak !status"),
        (State::Failed, found(Processing), "processing lookup@172800 rung 1 Break !status"),
        (State::Failed, found(Failed), "failed (refused by the provider)"),
        (State::Canceled, found(Succeeded), "succeeded PostAndBreak !status"),
        (State::Canceled, found(Canceled), "canceled"),
        (State::Canceled, Absent, "canceled"),
        (State::Reversed, found(Failed), "reversed"),
        (State::Reversed, found(Succeeded), "reversed !status"),
        (State::Reversed, Absent, "reversed"),
    ] {
        check(looked_at(state), outcome, DAY, expected);
    }
    // A list that lags right after the create is no sign that a posted refund is missing.
    let at_once = refund_in(State::Succeeded).known_as("re_1").create(0, accepted(Succeeded)).lookup(2, None);
    check(at_once, Absent, 2, "succeeded lookup@2 rung 1");
    check(looked_at(State::Succeeded).rung(12), unknown(), DAY, "succeeded");
}

#[test]
fn a_parked_refund_leaves_by_evidence_only() {
    let parked = || refund_in(State::NeedsReview).create(0, unknown()).lookup(DAY, None);
    for (outcome, expected) in [
        (found(Succeeded), "succeeded Post"),
        (found(Failed), "failed (refused by the provider)"),
        (found(Processing), "processing lookup@172800 rung 1"),
        (Absent, "needs_review (parked)"),
        (unknown(), "needs_review (parked)"),
    ] {
        check(parked(), outcome, DAY, expected);
    }
    let refused = refund_in(State::NeedsReview).create(0, already_refunded()).lookup(DAY, None);
    check(refused, Absent, DAY, "failed (already_refunded)");
    let reused = refund_in(State::NeedsReview).create(0, key_reused()).lookup(DAY, None);
    check(reused, Absent, DAY, "needs_review (parked)");
}

#[test]
fn a_restored_row_may_be_created_after_one_absent_lookup() {
    let restored = || refund().lookup(9, None).next(NextAction::Lookup, 9);
    for (outcome, expected) in [
        (Absent, "recorded create@9"),
        (found(Succeeded), "succeeded Post"),
        (unknown(), "recorded lookup@9 rung 1"),
        (not_executed(), "recorded lookup@10"),
    ] {
        check(restored(), outcome, 9, expected);
    }
}

#[test]
fn without_a_lookup_the_ladder_paces_the_resends() {
    let mut refund = refund_in(State::Sending);
    for (number, delay) in (0i64..).zip([0, 5, 30, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR]) {
        let started = number * 100;
        refund = refund.create(started, None);
        let expected = format!("unknown create@{}", started + 60 + delay);
        check_at(refund.clone(), unknown(), &without_lookup(), started + 60, &expected);
        refund.file.attempts.last_mut().unwrap().outcome =
            refund_in(State::Unknown).create(0, unknown()).file.attempts[0].outcome.clone();
    }
    // An early error is not a deadline passed.
    check_at(sending(), unknown(), &without_lookup(), 1, "unknown create@60");
    let second = || refund_in(State::Sending).create(0, unknown()).create(60, None);
    check_at(second(), rejected_stored(), &without_lookup(), 61, "failed (disputed)");
    check_at(second(), rejected_not_stored(), &without_lookup(), 61, "unknown create@120");
}
