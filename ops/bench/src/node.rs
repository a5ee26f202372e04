//! One node as `serve` wires it, on a private PostgreSQL and the mock, inside this process.

use crate::Failure;
use crate::mock::MockProcess;
use chrono::TimeDelta;
use jobs::ids::{IntentId, PaymentId};
use jobs::money::Money;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::key::idempotency_key;
use orchestrator::clock::SystemClock;
use orchestrator::lease::keeper::SessionKeeper;
use orchestrator::lease::parameters::LeaseParameters;
use orchestrator::metrics::Metrics;
use orchestrator::psp::stripe::{StripeOptions, StripeProvider};
use orchestrator::psp::{CreateBody, Provider};
use orchestrator::randomness::Randomness;
use orchestrator::store::Store;
use orchestrator::store::postgres::{PostgresOptions, PostgresStore};
use orchestrator::store::submit::{NewIntent, NewPayment};
use orchestrator::work::{PspLink, Worker, WorkerOptions, WorkerParts};
use std::sync::Arc;
use std::time::Duration;
use testbed::Postgres;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

pub(crate) const PSP: &str = "bench";
const ACCOUNT: &str = "acct_mock";

/// The database with its schema, and the store on it.
pub(crate) struct Database {
    pub(crate) server: Postgres,
    pub(crate) url: String,
    pub(crate) store: Arc<PostgresStore>,
}

impl Database {
    /// fsync on, as in production.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let server = Postgres::start(testbed::PostgresOptions::durable().setting("max_connections", "200"))?;
        let url = server.url(&server.create_database()?);
        let store = Arc::new(PostgresStore::connect(PostgresOptions::new(url.clone())).await?);
        orchestrator::store::migrate::migrate_postgres(store.pool()).await?;
        Ok(Self { server, url, store })
    }
}

/// The running loops; dropping it stops them.
pub(crate) struct Node {
    pub(crate) wake: Arc<Notify>,
    pub(crate) keeper: Arc<SessionKeeper>,
    shutdown: watch::Sender<bool>,
    loops: JoinSet<()>,
}

impl Node {
    pub(crate) async fn start(database: &Database, provider: Arc<dyn Provider>, in_flight: usize) -> Result<Self, Failure> {
        let clock = Arc::new(SystemClock);
        let randomness = Arc::new(Randomness::from_os());
        let keeper = Arc::new(SessionKeeper::new(
            database.store.leases(),
            clock.clone(),
            LeaseParameters::default(),
            "bench".to_owned(),
            Metrics::discarded(),
            randomness.clone(),
        ));
        let wake = Arc::new(Notify::new());
        let worker = Worker::new(WorkerParts {
            store: database.store.clone(),
            keeper: keeper.clone(),
            links: vec![PspLink {
                psp: PSP.to_owned(),
                account: ACCOUNT.to_owned(),
                provider,
                capabilities: capabilities(in_flight),
            }],
            clock,
            randomness,
            metrics: Metrics::discarded(),
            wake: wake.clone(),
            options: WorkerOptions::default(),
        });
        let (shutdown, asked) = watch::channel(false);
        let mut loops = JoinSet::new();
        let kept = keeper.clone();
        let keeper_asked = asked.clone();
        loops.spawn(async move { kept.run(keeper_asked).await });
        loops.spawn(worker.run(asked));
        while keeper.current().is_none() {
            tokio::time::timeout(Duration::from_secs(10), keeper.changed()).await?;
        }
        Ok(Self { wake, keeper, shutdown, loops })
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.send_replace(true);
        while self.loops.join_next().await.is_some() {}
    }
}

fn capabilities(in_flight: usize) -> Capabilities {
    Capabilities { concurrency: in_flight, creates_per_second: 0, absence_window: TimeDelta::minutes(5), ..Capabilities::stripe() }
}

pub(crate) fn provider(mock: &MockProcess) -> Result<Arc<dyn Provider>, Failure> {
    Ok(Arc::new(StripeProvider::new(StripeOptions::new(&mock.url, "sk_test_bench".to_owned().into(), ACCOUNT))?))
}

/// Payments of their own, one for each refund, on both sides.
pub(crate) async fn add_payments(database: &Database, mock: &MockProcess, name: &str, count: usize) -> Result<(), Failure> {
    let references: Vec<String> = (0..count).map(|number| format!("pi_{name}{number:07}")).collect();
    mock.add_payments(&references).await?;
    for part in references.chunks(orchestrator::store::BATCH_MAX) {
        let payments: Vec<NewPayment> = part
            .iter()
            .map(|reference| NewPayment {
                payment_id: PaymentId::from_stored(reference.clone()),
                psp: PSP.to_owned(),
                psp_account: ACCOUNT.to_owned(),
                psp_payment_ref: reference.clone(),
                merchant_reference: None,
                captured: euros(100_000),
                charged_back_minor: 0,
            })
            .collect();
        let _inserted = database.store.import_payments(&payments).await?;
    }
    Ok(())
}

pub(crate) fn intents(provider: &dyn Provider, name: &str, count: usize) -> Result<Vec<NewIntent>, Failure> {
    (0..count)
        .map(|number| {
            let intent_id = IntentId::from_stored(format!("{name}-{number:07}"));
            let psp_payment_ref = format!("pi_{name}{number:07}");
            let amount = euros(100);
            let body = CreateBody { intent_id: &intent_id, psp_payment_ref: &psp_payment_ref, amount, refund_reason: None };
            let create_body = provider.encode_create(&body)?;
            Ok(NewIntent {
                payment_id: PaymentId::from_stored(psp_payment_ref.clone()),
                amount,
                merchant_reference: None,
                refund_reason: None,
                psp: PSP.to_owned(),
                psp_account: ACCOUNT.to_owned(),
                psp_payment_ref,
                idempotency_key: idempotency_key("bench", ACCOUNT, &intent_id),
                create_body,
                due_at: None,
                intent_id,
            })
        })
        .collect()
}

#[expect(clippy::unwrap_used, reason = "EUR is a currency")]
pub(crate) fn euros(minor: i64) -> Money {
    Money { minor, currency: "EUR".parse().unwrap() }
}
