//! The runtime on which proxies, readers of output and timers live: one worker thread, started on first use, never ended.
//!
//! It is apart from the test's runtime so that a test may block its thread, pause tokio's clock or end its runtime without stopping them.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("testbed")
            .enable_all()
            .build()
            .expect("a runtime for the testbed starts")
    })
}

/// Sleeps in real time, also where the caller's clock is paused.
pub(crate) async fn sleep(duration: Duration) {
    // Made inside the task: a sleep belongs to the runtime on which it is made. The task neither panics nor is aborted.
    runtime().spawn(async move { tokio::time::sleep(duration).await }).await.expect("a sleep ends");
}

/// Awaits `future` for at most `duration` of real time.
pub(crate) async fn timeout<T>(duration: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = future => Some(done),
        () = sleep(duration) => None,
    }
}
