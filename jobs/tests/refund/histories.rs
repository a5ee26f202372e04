//! Random histories against an honest provider: holders that die at any point, answers that are lost or late, people who meddle.
//!
//! `world` checks every write. At the end the provider behaves, and the refund must end or be parked in few steps, as the
//! provider's own book says.

use crate::build::*;
use crate::model::{Course, Verdict};
use crate::world::{Delivery, Fate, Move, Setup, Wish, World, run};
use chrono::TimeDelta;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::state::{PspStatus, State};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

fn any_course() -> impl Strategy<Value = Course> {
    use PspStatus::{Canceled, Failed, Processing, Succeeded};
    let course = |first, later| (0..4 * DAY).prop_map(move |after| Course { first, later, after });
    prop_oneof![
        4 => Just(Course { first: Succeeded, later: Succeeded, after: 0 }),
        1 => course(Processing, Succeeded),
        1 => course(Processing, Failed),
        1 => course(Processing, Canceled),
        1 => course(Succeeded, Failed),
    ]
}

fn any_setup() -> impl Strategy<Value = Setup> {
    let with_key = |lifetime: i64| Setup {
        capabilities: Capabilities { key_lifetime: Some(TimeDelta::seconds(lifetime)), ..stripe() },
        key_lifetime: Some(lifetime),
        course: Course { first: PspStatus::Succeeded, later: PspStatus::Succeeded, after: 0 },
        local_offset: 0,
        has_stopped_senders: false,
    };
    let base = prop_oneof![
        4 => Just(with_key(DAY)),
        1 => Just(with_key(2 * HOUR)),
        1 => Just(with_key(MINUTE)),
        1 => Just(Setup { capabilities: without_lookup(), ..with_key(DAY) }),
        1 => Just(Setup { capabilities: without_key(), key_lifetime: None, ..with_key(DAY) }),
        1 => Just(Setup { has_stopped_senders: true, ..with_key(DAY) }),
    ];
    (base, any_course(), -30i64..=30).prop_map(|(setup, course, local_offset)| Setup { course, local_offset, ..setup })
}

fn any_move() -> impl Strategy<Value = Move> {
    let wait = prop_oneof![
        6 => Just(-1),
        1 => 0i64..3,
        1 => 0i64..100,
        1 => 0i64..1_000,
        1 => 0i64..8 * HOUR,
        1 => 0i64..2 * DAY,
    ];
    let verdict = prop_oneof![
        3 => Just(Verdict::Execute),
        2 => Just(Verdict::NotExecuted),
        1 => Just(Verdict::RejectAndStore),
        1 => Just(Verdict::Reject),
        1 => Just(Verdict::AlreadyRefunded),
    ];
    let fate = prop_oneof![
        3 => (verdict, 0i64..60).prop_map(|(verdict, after)| Fate::Answered { verdict, after }),
        3 => prop_oneof![3 => 0i64..361, 1 => 0i64..DAY].prop_map(|execute_after| Fate::Delayed { execute_after }),
        2 => Just(Fate::Lost),
    ];
    let delivery = prop_oneof![
        4 => Just(Delivery::InTime),
        2 => prop_oneof![0i64..60, 0i64..DAY].prop_map(Delivery::Late),
        1 => Just(Delivery::Never),
    ];
    let wish = prop_oneof![
        12 => Just(Wish::None),
        1 => Just(Wish::Cancel),
        1 => Just(Wish::Replay),
        1 => Just(Wish::Notice),
    ];
    (wait, fate, 0i64..400, delivery, wish, prop::bool::weighted(0.9)).prop_map(
        |(wait, fate, visible_after, delivery, wish, creates_allowed)| Move {
            wait,
            fate,
            visible_after,
            delivery,
            wish,
            creates_allowed,
        },
    )
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn check(cases: u32, distort: impl Fn(Setup) -> Setup) -> Result<(), String> {
    let histories = (any_setup(), prop::collection::vec(any_move(), 0..30));
    let result = runner(cases)
        .run(&histories, |(setup, moves)| run(distort(setup), &moves).map(|_| ()).map_err(TestCaseError::fail));
    match result {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, (setup, moves))) => Err(format!("{why}\n{setup:#?}\n{moves:#?}")),
        Err(TestError::Abort(why)) => Err(why.to_string()),
    }
}

#[test]
fn whatever_happens_nobody_is_paid_twice_and_every_refund_ends_or_is_parked() {
    if let Err(why) = check(1_500, |setup| setup) {
        panic!("{why}");
    }
}

#[test]
fn histories_would_show_a_rule_that_trusts_too_much() {
    // Each call is proved absent at once, and keys are forgotten within a minute while the record says a day.
    let deceived = check(1_500, |setup| Setup {
        key_lifetime: Some(MINUTE),
        capabilities: Capabilities { absence_window: TimeDelta::seconds(-60), ..stripe() },
        ..setup
    });
    assert!(deceived.is_err_and(|why| why.contains("two refunds")));
}

#[test]
fn histories_reach_every_state() {
    let mut seen = std::collections::BTreeSet::new();
    let histories = (any_setup(), prop::collection::vec(any_move(), 0..30));
    let mut runner = runner(1);
    let (mut resends, mut total) = (0, 0);
    for _ in 0..300 {
        let (setup, moves) = histories.new_tree(&mut runner).unwrap().current();
        let mut world = World::new(setup.clone());
        for step in &moves {
            world.step(*step).unwrap();
            seen.insert(world.intent().state);
        }
        let ended = run(setup, &moves).unwrap();
        seen.insert(ended.intent().state);
        total += ended.refund.file.attempts.len();
        resends += ended.refund.file.attempts.iter().filter(|attempt| attempt.grounds.is_some()).count();
    }
    assert_eq!(seen.len(), State::ALL.len(), "{seen:?}");
    assert!(resends > 30, "{resends} resends among {total} attempts");
}
