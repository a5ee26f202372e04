//! When a second create with the same key is safe.

use crate::build::*;
use chrono::TimeDelta;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::facts::Facts;
use jobs::refund::outcome::Outcome::Absent;
use jobs::refund::resend::{NoResend, Now, grounds};
use jobs::refund::state::State;

fn check(refund: &Refund, capabilities: &Capabilities, now: Now, expected: Result<&str, NoResend>) {
    let facts = Facts::new(&refund.file.attempts, &[]);
    let found = grounds(&refund.file.intent, &facts, capabilities, now);
    match expected {
        Ok(part) => assert!(found.as_ref().is_ok_and(|grounds| grounds.contains(part)), "{found:?} for {refund:#?}"),
        Err(why) => assert_eq!(found, Err(why), "{refund:#?}"),
    }
}

fn timed_out() -> Refund {
    refund_in(State::Unknown).create(0, unknown())
}

fn absent() -> Refund {
    timed_out().lookup(360, Absent)
}

fn lifetime(minutes: i64) -> Capabilities {
    Capabilities { key_lifetime: Some(TimeDelta::minutes(minutes)), ..stripe() }
}

#[test]
fn absence_is_proved_only_by_a_reading_begun_after_the_last_deadline_and_the_absence_window() {
    for (refund, expected) in [
        (timed_out(), Err(NoResend::NotAbsent)),
        (timed_out().lookup(59, Absent), Err(NoResend::NotAbsent)),
        (timed_out().lookup(61, Absent), Err(NoResend::NotAbsent)),
        (timed_out().lookup(359, Absent), Err(NoResend::NotAbsent)),
        (timed_out().lookup(360, Absent), Ok("absent in lookup 00000000-0000-0000-0000-000000000002")),
        (timed_out().lookup(360, unknown()), Err(NoResend::NotAbsent)),
        (timed_out().lookup(360, not_executed()), Err(NoResend::NotAbsent)),
        (timed_out().lookup(360, None), Err(NoResend::NotAbsent)),
        // A proof that was followed by another create proves nothing about it, nor does its own early reading.
        (absent().create(400, unknown()), Err(NoResend::NotAbsent)),
        (absent().create(400, unknown()).lookup(759, Absent), Err(NoResend::NotAbsent)),
        (absent().create(400, unknown()).lookup(760, Absent), Ok("lookup 00000000-0000-0000-0000-000000000004")),
        (absent().create(400, not_executed()), Ok("lookup 00000000-0000-0000-0000-000000000002")),
        (absent().lookup(800, unknown()), Ok("lookup 00000000-0000-0000-0000-000000000002")),
        (refund_in(State::Unknown), Err(NoResend::NoKeyOnRecord)),
    ] {
        check(&refund, &stripe(), now(900), expected);
    }
}

#[test]
fn both_clocks_must_be_inside_the_keys_life_by_two_holds_or_a_tenth_of_it() {
    let both = now;
    let clocks = |database, local| Now { database: at(database), local: at(local) };
    // 24 h: a tenth is 2 h 24 min, so the last moment is before 21 h 36 min.
    let edge = 21 * HOUR + 36 * MINUTE;
    for (capabilities, now, expected) in [
        (stripe(), both(400), Ok("key honoured until")),
        (stripe(), both(edge - 1), Ok("resend safe until")),
        (stripe(), both(edge), Err(NoResend::KeyTooOld)),
        (stripe(), clocks(edge - 1, edge), Err(NoResend::KeyTooOld)),
        (stripe(), clocks(edge, edge - 1), Err(NoResend::KeyTooOld)),
        (stripe(), clocks(400, 2 * DAY), Err(NoResend::KeyTooOld)),
        // Two holds outweigh a tenth when holds are long.
        (Capabilities { hold_max: TimeDelta::hours(2), ..stripe() }, both(20 * HOUR - 1), Ok("")),
        (Capabilities { hold_max: TimeDelta::hours(2), ..stripe() }, both(20 * HOUR), Err(NoResend::KeyTooOld)),
    ] {
        check(&absent(), &capabilities, now, expected);
    }
}

#[test]
fn a_short_lived_or_missing_key_is_never_relied_on() {
    for (capabilities, expected) in [
        (lifetime(1), Err(NoResend::LifetimeTooShort)),
        (lifetime(119), Err(NoResend::LifetimeTooShort)),
        (lifetime(120), Ok("")),
        (without_key(), Err(NoResend::NoKey)),
    ] {
        check(&absent(), &capabilities, now(400), expected);
    }
}

#[test]
fn the_keys_age_is_counted_from_the_earliest_create_that_may_have_executed() {
    let late = 21 * HOUR;
    for (refund, seconds, expected) in [
        (absent().create(late, unknown()).lookup(late + 360, Absent), 22 * HOUR, Err(NoResend::KeyTooOld)),
        (
            refund_in(State::Unknown).create(0, not_executed()).create(late, unknown()).lookup(late + 360, Absent),
            22 * HOUR,
            Ok(""),
        ),
    ] {
        check(&refund, &stripe(), now(seconds), expected);
    }
}

#[test]
fn nothing_is_sent_again_after_a_refusal() {
    for (refusal, expected) in [
        (already_refunded(), NoResend::AlreadyRefunded),
        (rejected_not_stored(), NoResend::Rejected),
        (rejected_stored(), NoResend::Rejected),
    ] {
        check(&absent().create(400, refusal).lookup(760, Absent), &stripe(), now(800), Err(expected));
    }
}

#[test]
fn without_a_lookup_absence_is_the_last_creates_deadline_passed() {
    for (refund, seconds, expected) in [
        (timed_out(), 59, Err(NoResend::NotAbsent)),
        (timed_out(), 60, Ok("no lookup at this provider")),
        (timed_out().create(60, unknown()), 119, Err(NoResend::NotAbsent)),
        (timed_out().create(60, unknown()), 120, Ok("no lookup at this provider")),
        (timed_out(), 22 * HOUR, Err(NoResend::KeyTooOld)),
    ] {
        check(&refund, &without_lookup(), now(seconds), expected);
    }
    check(&timed_out(), &Capabilities { key_lifetime: None, ..without_lookup() }, now(60), Err(NoResend::NoKey));
}
