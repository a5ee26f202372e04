//! Random sequences of commands, played to a store and to the memory store: same answers, and the same rows in the end.
//!
//! The memory store is the specification. A case plays on ids of its own, so all cases share one database; what a database
//! assigns (times, numbers of rows, epochs) is taken out before comparing. Proptest shrinks a failing sequence and prints it with
//! the seed; `PROPTEST_RNG_SEED=<seed>` plays the run again, `PROPTEST_CASES=<n>` plays more.

mod command;
mod player;
mod promises;
mod rows;

use crate::store_memory::MemoryEngine;
use crate::store_suite::Engine;
use command::Command;
use player::Player;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use std::cell::Cell;

/// Enough to meet every kind of refusal many times over, and some seconds on the slowest engine.
const CASES: u32 = 40;

/// Longest shrinking, in sequences played.
const SHRINKS_MAX: u32 = 300;

/// Plays the cases to a fresh engine of this kind.
pub(crate) fn same_as_memory(fresh: impl AsyncFnOnce() -> Box<dyn Engine>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let model: Box<dyn Engine> = Box::new(MemoryEngine::new());
    let engines = [model, runtime.block_on(fresh())];
    let case = Cell::new(0);
    let play = |commands: Vec<Command>| {
        case.set(case.get() + 1);
        runtime.block_on(play_case(&engines, case.get(), &commands)).map_err(TestCaseError::fail)
    };

    let mut config = Config { failure_persistence: None, max_shrink_iters: SHRINKS_MAX, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => rand::random(),
    };
    config.rng_seed = RngSeed::Fixed(seed);
    let result = TestRunner::new(config).run(&command::sequences(), play);
    // Leaving the runtime's context may end connections, which takes the runtime.
    let context = runtime.enter();
    drop(engines);
    drop(context);
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, commands)) => panic!("PROPTEST_RNG_SEED={seed}\n{why}\n{commands:#?}"),
        Err(TestError::Abort(why)) => panic!("PROPTEST_RNG_SEED={seed}\n{why}"),
    }
}

async fn play_case(engines: &[Box<dyn Engine>], case: u32, commands: &[Command]) -> Result<(), String> {
    let mut players = Vec::with_capacity(engines.len());
    for engine in engines {
        players.push(Player::start(engine.as_ref(), case).await?);
    }
    for (number, command) in commands.iter().enumerate() {
        let play = players[0].prepare(command, number).await?;
        let expected = players[0].play(&play).await?;
        for player in &mut players[1..] {
            let answer = player.play(&play).await?;
            if answer != expected {
                return Err(format!("command {number} {command:?}\nmemory: {expected}\nstore:  {answer}"));
            }
        }
    }
    let expected = rows::all(&players[0]).await?;
    promises::check(&players[0]).await?;
    for player in &players[1..] {
        let found = rows::all(player).await?;
        for (expected, found) in expected.iter().zip(&found) {
            if expected != found {
                return Err(format!("after all commands\nmemory: {expected}\nstore:  {found}"));
            }
        }
        if expected.len() != found.len() {
            return Err(format!("memory has {} rows, the store {}", expected.len(), found.len()));
        }
    }
    Ok(())
}
