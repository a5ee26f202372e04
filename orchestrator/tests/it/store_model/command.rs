//! What can happen to a store, in terms that fit any state of it.

use jobs::refund::state::State;
use proptest::prelude::*;

/// Names a case plays with: few, so that commands meet.
pub(crate) const INTENTS: u8 = 5;
pub(crate) const PAYMENTS: u8 = 3;
const SOURCES: u8 = 8;
const COMMANDS_MAX: usize = 30;

#[derive(Debug, Clone)]
pub(crate) enum Command {
    Import { payment: u8, minor: i64 },
    Submit(Vec<Refund>),
    Write(Vec<Step>),
    Tell(Vec<(u8, u8)>),
    RaiseEpoch,
    Pause,
    Resume,
    Due { creates_allowed: bool, live: Vec<i64> },
}

#[derive(Debug, Clone)]
pub(crate) struct Refund {
    pub(crate) intent: u8,
    pub(crate) payment: u8,
    pub(crate) minor: i64,
    pub(crate) reason: bool,
}

/// A write as some holder would make it, from the row as it is, with at most one thing wrong.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) intent: u8,
    pub(crate) hold: Hold,
    pub(crate) state: State,
    pub(crate) due: bool,
    pub(crate) installs: bool,
    pub(crate) lookup: bool,
    /// Which of the intent's attempts it settles, counted from the last one.
    pub(crate) settles: Option<u8>,
    pub(crate) reads: bool,
    pub(crate) breaks: u8,
    pub(crate) wrong: Wrong,
}

/// The writer's token, compared with the row's fence.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hold {
    /// A further step of the same hold.
    Same,
    /// A later holder's first step.
    Next,
    /// An earlier holder, still at it.
    Before { first_step: bool },
    /// The same hold, believing it had not begun.
    SameAsFirst,
    /// A later holder, believing it had begun.
    NextAsFurther,
    /// A holder of the generation before.
    EpochBefore,
    /// A holder of a generation nobody registered.
    EpochAfter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Nothing,
    VersionBefore,
    VersionAfter,
    OpenForgotten,
    OpenAnother,
    NoNextAction,
    NoReason,
    HolderWithoutAttempt,
    OutcomeOfNoAttempt,
    TransferTwice,
    AttemptUsed,
    AttemptNotOpen,
    MessageRead,
    MessageUnknown,
    RungNegative,
}

pub(crate) fn sequences() -> impl Strategy<Value = Vec<Command>> {
    prop::collection::vec(command(), 1..COMMANDS_MAX)
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        1 => (0..PAYMENTS, prop::sample::select(vec![100, 250])).prop_map(|(payment, minor)| Command::Import { payment, minor }),
        5 => prop::collection::vec(refund(), 1..5).prop_map(Command::Submit),
        14 => prop::collection::vec(step(), 1..4).prop_map(one_per_intent),
        4 => prop::collection::vec((0..=INTENTS, 0..SOURCES), 1..4).prop_map(Command::Tell),
        1 => Just(Command::RaiseEpoch),
        1 => Just(Command::Pause),
        1 => Just(Command::Resume),
        3 => (any::<bool>(), prop::collection::vec(1_i64..6, 0..4))
            .prop_map(|(creates_allowed, live)| Command::Due { creates_allowed, live }),
    ]
}

fn minor() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![10, 10, 30, 60, 100, 100, 250, 5_000_000_000])
}

fn refund() -> impl Strategy<Value = Refund> {
    (0..INTENTS, 0..PAYMENTS, minor(), prop::bool::weighted(0.2)).prop_map(|(intent, payment, minor, reason)| Refund {
        intent,
        payment,
        minor,
        reason,
    })
}

/// A worker's batch holds an intent once, because it holds its lease once.
fn one_per_intent(mut steps: Vec<Step>) -> Command {
    steps.sort_by_key(|step| step.intent);
    steps.dedup_by_key(|step| step.intent);
    Command::Write(steps)
}

fn step() -> impl Strategy<Value = Step> {
    let hold = prop_oneof![
        8 => Just(Hold::Same),
        6 => Just(Hold::Next),
        1 => any::<bool>().prop_map(|first_step| Hold::Before { first_step }),
        1 => Just(Hold::SameAsFirst),
        1 => Just(Hold::NextAsFurther),
        1 => Just(Hold::EpochBefore),
        1 => Just(Hold::EpochAfter),
    ];
    let wrong = prop_oneof![
        10 => Just(Wrong::Nothing),
        4 => prop::sample::select(vec![
            Wrong::VersionBefore,
            Wrong::VersionAfter,
            Wrong::OpenForgotten,
            Wrong::OpenAnother,
            Wrong::NoNextAction,
            Wrong::NoReason,
            Wrong::HolderWithoutAttempt,
            Wrong::OutcomeOfNoAttempt,
            Wrong::TransferTwice,
            Wrong::AttemptUsed,
            Wrong::AttemptNotOpen,
            Wrong::MessageRead,
            Wrong::MessageUnknown,
            Wrong::RungNegative,
        ]),
    ];
    let call = (any::<bool>(), any::<bool>(), prop::option::of(0..3_u8));
    let rest = (any::<bool>(), any::<bool>(), prop::sample::select(vec![0, 0, 0, 1, 2]));
    (0..INTENTS, hold, prop::sample::select(State::ALL.to_vec()), call, rest, wrong).prop_map(
        |(intent, hold, state, (installs, lookup, settles), (due, reads, breaks), wrong)| Step {
            intent,
            hold,
            state,
            due,
            installs,
            lookup,
            settles,
            reads,
            breaks,
            wrong,
        },
    )
}
