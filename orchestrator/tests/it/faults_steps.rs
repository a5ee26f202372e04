//! The steps of a hold, and what can happen to each: the names that both databases' tables share.

use std::future::Future;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The step order of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Claim,
    Install,
    Call,
    Commit,
    Release,
}

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not take effect, and the replica is told or cut off.
    Failed,
    /// It takes effect, and the replica is not told: whatever it does next is a repeat.
    Repeated,
    /// SIGKILL in the middle.
    Killed,
    /// The replica stands still in the middle until its successor is done, then goes on.
    Late,
}

pub(crate) const STEPS: [Step; 5] = [Step::Claim, Step::Install, Step::Call, Step::Commit, Step::Release];
pub(crate) const FAULTS: [Fault; 4] = [Fault::Failed, Fault::Repeated, Fault::Killed, Fault::Late];

/// Rows that run side by side: each is a few processes that mostly wait.
const SIDE_BY_SIDE: usize = 4;

/// Runs every row of the table; one that fails names itself.
pub(crate) async fn every_row<F>(row: impl Fn(Step, Fault) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut rows = JoinSet::new();
    for step in STEPS {
        for fault in FAULTS {
            let (row, places) = (row(step, fault), places.clone());
            rows.spawn(async move {
                let _place = places.acquire_owned().await.unwrap();
                let ended = tokio::spawn(row).await;
                ended.err().map(|error| format!("{step:?} x {fault:?}: {error}"))
            });
        }
    }
    let failures: Vec<String> = rows.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{} rows failed:\n{}", failures.len(), failures.join("\n"));
}
