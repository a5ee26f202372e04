//! The server: one listener, the calls under `/v1` and the admin calls under `/_mock/`.

pub(crate) mod admin;
mod answer;
mod call;
mod course;
mod credentials;
mod line;
mod work;

pub(crate) use line::CutListener;
use line::Line;

use crate::clock::Clock;
use crate::config::Config;
use crate::ids;
use crate::state::events::Group;
use crate::state::tallies::Totals;
use crate::state::{Id, State};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

/// Serves until the mock stops.
pub(crate) async fn serve(listener: CutListener, shared: Arc<Shared>) {
    let app = admin::routes().fallback(answer::v1).with_state(shared.clone());
    let service = app.into_make_service_with_connect_info::<Line>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(async move { shared.stopped().await });
    if let Err(error) = serving.await {
        tracing::error!(%error, "serving ended");
    }
}

/// What every call shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    state: Mutex<State>,
    accounts: HashMap<String, Id>,
    default_account: Id,
    requests: AtomicU64,
    in_flight: AtomicU64,
    slowest_ms: AtomicU64,
    /// Something earlier than before may have become due.
    pub(crate) due_changed: Notify,
    stopping: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(config: Config, outgoing: mpsc::Sender<Group>) -> Self {
        let accounts = config.accounts.iter().map(|(key, account)| (key.clone(), account.as_str().into())).collect();
        Self {
            state: Mutex::new(State::new(&config, outgoing)),
            clock: Clock::default(),
            accounts,
            default_account: config.default_account.as_str().into(),
            requests: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            slowest_ms: AtomicU64::new(0),
            due_changed: Notify::new(),
            stopping: watch::Sender::new(false),
            config,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state as of now: what has become due has happened.
    pub(crate) fn now(&self) -> (MutexGuard<'_, State>, i64) {
        let mut state = self.lock();
        let now_ms = self.clock.now_ms();
        state.apply_due(now_ms);
        (state, now_ms)
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.now().0.tallies.totals;
        totals.calls_in_flight = self.in_flight.load(Ordering::Relaxed);
        totals.slowest_call_ms = self.slowest_ms.load(Ordering::Relaxed);
        totals
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        drop(self.now());
        self.due_changed.notify_one();
    }

    pub(crate) fn reset(&self) {
        self.lock().reset(&self.config);
        self.slowest_ms.store(0, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) async fn stopped(&self) {
        if self.stopping.subscribe().wait_for(|stopping| *stopping).await.is_err() {
            tracing::debug!("the mock is gone");
        }
    }

    /// Carries out what is due at its time, so that webhooks go out without a call that looks.
    pub(crate) async fn carry_out_due(&self) {
        loop {
            let wait = {
                let (state, now_ms) = self.now();
                state
                    .next_due_ms()
                    .map(|at_ms| Duration::from_millis(at_ms.saturating_sub(now_ms).max(1).unsigned_abs()))
            };
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.due_changed.notified() => {}
                () = tokio::time::sleep(wait.unwrap_or(Duration::from_secs(3600))) => {}
            }
        }
    }

    pub(crate) fn default_account(&self) -> Id {
        self.default_account.clone()
    }

    fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        ids::id("req", ids::mix(self.config.seed).wrapping_add(number))
    }
}
