//! A running mock inside this process: what tests, drills and the binary hold in their hands.

use crate::book::{self, AddedPayment, BookPage, BookQuery, Payment};
use crate::config::{Config, Webhook};
use crate::faults::Fault;
use crate::server::{CutListener, Shared, serve};
use crate::settlement::{self, ReportQuery};
use crate::state::tallies::{IntentCounters, Totals};
use crate::webhooks;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long a stop waits for calls to end; waits inside the mock end at once.
const STOP_LONGEST: Duration = Duration::from_secs(5);

/// A mock that listens. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Mock {
    shared: Arc<Shared>,
    address: SocketAddr,
    tasks: JoinSet<()>,
}

/// Why something was refused by the library's direct calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Mock {
    /// Listens and serves until stopped. Must be called within a tokio runtime.
    pub async fn start(config: Config) -> io::Result<Self> {
        let listener = CutListener::bind(config.listen)?;
        let address = listener.address()?;
        let (outgoing, incoming) = mpsc::channel(webhooks::WAITING_MOST);
        let shared = Arc::new(Shared::new(config, outgoing));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, shared.clone()));
        tasks.spawn({
            let shared = shared.clone();
            async move { shared.carry_out_due().await }
        });
        tasks.spawn({
            let shared = shared.clone();
            async move {
                tokio::select! {
                    biased;
                    () = shared.stopped() => {}
                    () = webhooks::deliver(shared.clone(), incoming) => {}
                }
            }
        });
        Ok(Self { shared, address, tasks })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base address for a client, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Scripts a fault; its id is the answer.
    pub fn add_fault(&self, fault: Fault) -> Result<u64, Refused> {
        self.shared.lock().faults.add(fault).map_err(Refused)
    }

    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// Puts paid payments into the book.
    pub fn add_payments(&self, payments: Vec<Payment>) -> Result<Vec<AddedPayment>, Refused> {
        book::add_payments(&self.shared, payments).map_err(|error| Refused(error.message().to_owned()))
    }

    /// Opens (or ends) a dispute on a payment.
    pub fn dispute(&self, payment: &str, open: bool) -> Result<(), Refused> {
        let (mut state, now_ms) = self.shared.now();
        let at = state.payment_named(payment).ok_or_else(|| Refused(format!("no payment '{payment}'")))?;
        state.dispute(at, open, now_ms);
        Ok(())
    }

    pub fn book(&self, query: &BookQuery) -> BookPage {
        book::read(&self.shared.now().0, query)
    }

    pub fn totals(&self) -> Totals {
        self.shared.totals()
    }

    /// Counters of one intent; `None` when no create named it.
    pub fn counters(&self, intent: &str) -> Option<IntentCounters> {
        self.shared.now().0.tallies.of(intent)
    }

    /// The settlement report as CSV.
    pub fn settlement_report(&self, query: &ReportQuery) -> Result<String, Refused> {
        settlement::report(&self.shared, query).map_err(Refused)
    }

    /// Where events go from now on.
    pub fn set_webhook(&self, webhook: Option<Webhook>) {
        self.shared.lock().webhook = webhook.map(Arc::new);
    }

    pub fn now_ms(&self) -> i64 {
        self.shared.clock.now_ms()
    }

    /// Moves the mock's clock forward; what becomes due happens at once.
    pub fn advance(&self, by: Duration) {
        self.shared.advance(by);
    }

    /// Forgets everything but the configuration, the endpoint for events and the clock.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Stops accepting, lets answers that are ready go out, and closes waiting connections.
    pub async fn stop(mut self) {
        self.shared.stop();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_LONGEST, ended).await.is_err() {
            tracing::warn!("calls under way were cut off");
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
