//! What a holder does next.

use crate::build::*;
use chrono::TimeDelta;
use jobs::ids::{SessionId, Token};
use jobs::refund::capabilities::Capabilities;
use jobs::refund::intent::{AttemptKind, NextAction};
use jobs::refund::plan::{CallPlan, Caller, Circumstances, Plan, plan};
use jobs::refund::state::{PspStatus, State};
use uuid::Uuid;

fn check(refund: &Refund, capabilities: &Capabilities, circumstances: Circumstances, expected: &str) {
    let plan = plan(&refund.file, capabilities, circumstances);
    assert_eq!(plan_text(&plan), expected, "{:#?}", refund.file);
}

fn call(refund: &Refund, capabilities: &Capabilities, seconds: i64) -> CallPlan {
    match plan(&refund.file, capabilities, circumstances(seconds)) {
        Plan::Call(call) => *call,
        other => panic!("{other:?}"),
    }
}

/// Creates with proof of absence behind them, resend planned.
fn absent(at: i64) -> Refund {
    refund_in(State::Unknown)
        .create(0, unknown())
        .lookup(at, jobs::refund::outcome::Outcome::Absent)
        .next(NextAction::Create, at)
}

#[test]
fn a_create_starts_only_from_recorded_or_by_the_resend_rule() {
    for (refund, seconds, expected) in [
        (refund(), 0, "create while sending"),
        (refund().next(NextAction::Create, 5), 4, "leave alone: NotDue"),
        (refund().next(NextAction::Create, 5), 5, "create while sending"),
        (refund().create(0, not_executed()), 5, "create while sending"),
        (refund_in(State::Sending).create(0, None).open(), 1, "lookup while unknown rung 1"),
        (refund_in(State::Sending).create(0, None).open(), 2 * DAY, "lookup while unknown rung 1"),
        (refund_in(State::Unknown).create(0, unknown()).rung(3), 70, "lookup while unknown rung 3"),
        (refund_in(State::Unknown).create(0, unknown()).lookup(70, None).open(), 71, "lookup while unknown"),
        (refund_in(State::Processing).create(0, accepted(PspStatus::Processing)), 70, "lookup while processing"),
        (absent(360), 400, "create while sending on grounds"),
        // Planned on a proof that another create has outdated meanwhile.
        (absent(360).create(400, unknown()).next(NextAction::Create, 460), 460, "lookup while unknown"),
        (absent(359), 400, "lookup while unknown"),
        (absent(360), 23 * HOUR, "write needs_review (absent_no_resend)"),
        (refund_in(State::NeedsReview), 0, "leave alone: NotDue"),
        (refund_in(State::NeedsReview).next(NextAction::Lookup, 0), 0, "lookup while needs_review"),
        (refund_in(State::Succeeded), DAY, "leave alone: NotDue"),
        (refund_in(State::Succeeded).next(NextAction::Lookup, 0), 0, "lookup while succeeded"),
        (refund_in(State::Failed), DAY, "leave alone: NotDue"),
        (refund_in(State::Canceled), DAY, "leave alone: NotDue"),
        (refund_in(State::Reversed), DAY, "leave alone: NotDue"),
    ] {
        check(&refund, &stripe(), circumstances(seconds), expected);
    }
}

#[test]
fn a_provider_that_can_not_be_asked_is_sent_to_again_only_after_the_deadline_and_never_without_a_key() {
    let neither = Capabilities { key_lifetime: None, ..without_lookup() };
    let sending = || refund_in(State::Sending).create(0, None).open();
    for (refund, capabilities, seconds, expected) in [
        (sending(), without_lookup(), 59, "write unknown create@60 rung 1"),
        (sending(), without_lookup(), 60, "create while sending on grounds"),
        (
            refund_in(State::Unknown).create(0, unknown()).next(NextAction::Create, 60),
            without_lookup(),
            60,
            "create while sending on grounds",
        ),
        (
            refund_in(State::Unknown).create(0, unknown()).next(NextAction::Create, 60),
            without_lookup(),
            22 * HOUR,
            "write needs_review (absent_no_resend)",
        ),
        (sending(), neither, 60, "write needs_review (absent_no_resend)"),
        (
            refund_in(State::Unknown)
                .create(0, unknown())
                .create(60, rejected_not_stored())
                .next(NextAction::Create, 120),
            without_lookup(),
            120,
            "write needs_review (absent_no_resend)",
        ),
        (
            refund_in(State::Processing).next(NextAction::Lookup, DAY).rung(1),
            without_lookup(),
            DAY,
            &format!("write processing lookup@{} rung 2", 2 * DAY),
        ),
        (refund_in(State::Processing).rung(30), without_lookup(), DAY, "write needs_review (ladder_ended)"),
    ] {
        check(&refund, &capabilities, circumstances(seconds), expected);
    }
}

#[test]
fn while_creates_are_not_allowed_lookups_go_on() {
    let paused = |seconds| Circumstances { creates_allowed: false, ..circumstances(seconds) };
    for (refund, capabilities, expected) in [
        (refund(), stripe(), "leave alone: CreatesNotAllowed"),
        (absent(360), stripe(), "leave alone: CreatesNotAllowed"),
        (refund_in(State::Sending).create(0, None).open(), without_lookup(), "leave alone: CreatesNotAllowed"),
        (refund_in(State::Sending).create(0, None).open(), stripe(), "lookup while unknown rung 1"),
        (refund_in(State::Unknown).create(0, unknown()), stripe(), "lookup while unknown"),
        (refund_in(State::Processing), stripe(), "lookup while processing"),
        (refund().timeline(0), stripe(), "lookup while recorded"),
        (refund().cancel(), stripe(), "write canceled"),
    ] {
        check(&refund, &capabilities, paused(400), expected);
    }
}

#[test]
fn rows_of_another_machine_version_are_left_alone_whatever_is_due() {
    for refund in [refund(), refund().cancel(), refund_in(State::Sending).create(0, None).open()] {
        for version in [0, 2] {
            check(
                &refund.clone().machine_version(version),
                &stripe(),
                circumstances(DAY),
                "leave alone: UnknownMachineVersion",
            );
        }
    }
}

#[test]
fn after_the_database_went_back_a_recorded_row_is_looked_up_before_a_create_or_a_cancel() {
    let restored = |seconds| Circumstances { timeline: 2, ..circumstances(seconds) };
    for (refund, capabilities, expected) in [
        (refund(), stripe(), "lookup while recorded"),
        (refund().timeline(3), stripe(), "lookup while recorded"),
        (refund().timeline(2), stripe(), "create while sending"),
        (refund(), without_lookup(), "write needs_review (restored_no_lookup)"),
        (refund().cancel(), stripe(), "write recorded lookup@9"),
        // Any write brings the row to the new timeline, so each must plan the look the row owes.
        (refund().replay(), stripe(), "write recorded lookup@9"),
        (refund().late(7, not_executed()), stripe(), "write recorded lookup@9"),
        (refund_in(State::Sending).create(0, None).open().late(1, not_executed()), stripe(), "write recorded lookup@9"),
        (refund_in(State::Unknown).create(0, unknown()), stripe(), "lookup while unknown"),
    ] {
        check(&refund, &capabilities, restored(9), expected);
    }
}

#[test]
fn a_call_is_recorded_with_its_deadline_the_earliest_keys_expiry_and_when_absence_counts() {
    let first = call(&refund(), &stripe(), 10);
    assert_eq!((first.started_at, first.deadline, first.next_action_at), (at(10), at(70), at(85)));
    assert_eq!((first.key_expires_at, first.absent_until), (Some(at(10 + DAY)), Some(at(370))));

    for (refund, capabilities, seconds, expires_at, absent_until) in [
        // A resend never renews the key.
        (absent(360), stripe(), 400, Some(DAY), Some(760)),
        // A create that was not executed does not count.
        (refund().create(0, not_executed()), stripe(), 9, Some(9 + DAY), Some(369)),
        (
            refund_in(State::Unknown)
                .create(0, not_executed())
                .create(100, unknown())
                .lookup(460, jobs::refund::outcome::Outcome::Absent)
                .next(NextAction::Create, 460),
            stripe(),
            500,
            Some(100 + DAY),
            Some(860),
        ),
        (refund(), without_key(), 10, None, Some(370)),
        (refund_in(State::Unknown).create(0, unknown()), stripe(), 70, Some(DAY), None),
        (refund().timeline(0), stripe(), 70, None, None),
    ] {
        let call = call(&refund, &capabilities, seconds);
        assert_eq!((call.key_expires_at, call.absent_until), (expires_at.map(at), absent_until.map(at)), "{refund:#?}");
    }
}

#[test]
fn an_install_leaves_a_row_whose_next_holder_looks_up_at_the_hold_maximum() {
    let refund = refund_in(State::Sending).create(0, None).open();
    let call = call(&refund, &stripe(), 5);
    let caller = Caller {
        attempt_id: attempt_id(9),
        token: Token { epoch: 1, counter: 9 },
        session: SessionId(Uuid::from_u128(9)),
    };
    let installed = call.installed(&refund.file.intent, caller, 4);
    let attempt = call.attempt(&refund.file.intent, caller);

    assert_eq!(
        (installed.state, installed.next_action, installed.next_action_at),
        (State::Unknown, NextAction::Lookup, Some(at(80)))
    );
    assert_eq!((installed.open_attempt, installed.fence, installed.timeline), (Some(attempt_id(9)), caller.token, 4));
    assert_eq!(
        (installed.version, attempt.installed_version),
        (refund.file.intent.version + 1, refund.file.intent.version + 1)
    );
    assert_eq!((attempt.kind, attempt.deadline), (AttemptKind::Lookup, at(5) + TimeDelta::seconds(60)));
}
