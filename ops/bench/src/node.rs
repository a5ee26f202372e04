//! One node as `serve` wires it, on a private PostgreSQL and the mock, inside this process.

use crate::Failure;
use crate::mock::MockProcess;
use jobs::ids::{IntentId, PaymentId};
use jobs::money::Money;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::key::idempotency_key;
use orchestrator::api::ApiProvider;
use orchestrator::clock::SystemClock;
use orchestrator::lease::keeper::SessionIds;
use orchestrator::lease::{LeaseParameters, Leases};
use orchestrator::node::{self, NodeParts, Telemetry};
use orchestrator::psp::stripe::{StripeConfig, StripeProvider};
use orchestrator::psp::{CreateBody, Provider};
use orchestrator::randomness::Randomness;
use orchestrator::store::Store;
use orchestrator::store::postgres::leases::PostgresLeases;
use orchestrator::store::postgres::{PostgresOptions, PostgresStore};
use orchestrator::store::submit::{NewIntent, NewPayment};
use orchestrator::work::WorkerOptions;
use orchestrator::work::wake::Wake;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use testbed::Postgres;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const PSP: &str = "bench";
const ACCOUNT: &str = "acct_mock";
const ENVIRONMENT: &str = "bench";

/// The database with its schema, and the store on it.
pub(crate) struct Database {
    pub(crate) server: Postgres,
    pub(crate) url: String,
    pub(crate) store: Arc<PostgresStore>,
    leases: Arc<dyn Leases>,
}

impl Database {
    /// fsync on, as in production.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let server = Postgres::start(testbed::PostgresOptions::durable().setting("max_connections", "200"))?;
        let url = server.url(&server.create_database()?);
        orchestrator::store::migrate::migrate(&url.clone().into()).await?;
        let store = Arc::new(PostgresStore::connect(PostgresOptions::new(url.clone().into())).await?);
        let leases = Arc::new(PostgresLeases::connect(PostgresOptions::new(url.clone().into())).await?);
        Ok(Self { server, url, store, leases })
    }
}

/// A running node.
pub(crate) struct Node {
    pub(crate) wake: Wake,
    pub(crate) url: String,
    stop: oneshot::Sender<()>,
    running: JoinHandle<std::io::Result<()>>,
}

impl Node {
    pub(crate) async fn start(
        database: &Database,
        provider: Arc<dyn Provider>,
        in_flight: usize,
    ) -> Result<Self, Failure> {
        let provider = ApiProvider {
            provider,
            account: ACCOUNT.to_owned(),
            kind: "stripe",
            capabilities: capabilities(in_flight),
        };
        let node = node::Node::new(NodeParts {
            environment: ENVIRONMENT.to_owned(),
            store: database.store.clone(),
            providers: BTreeMap::from([(PSP.to_owned(), provider)]),
            clock: Arc::new(SystemClock),
            leases: database.leases.clone(),
            lease_parameters: LeaseParameters::default(),
            label: "bench".to_owned(),
            randomness: Arc::new(Randomness::from_os()),
            session_ids: SessionIds::from_os(),
            telemetry: Telemetry::new(),
            request_timeout: Duration::from_secs(30),
            worker: WorkerOptions::default(),
        });
        let api = node.api().clone();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(node.run(listener, async move {
            drop(stopped.await);
        }));
        while !(api.readiness)().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Self { wake: api.wake.clone(), url, stop, running })
    }

    pub(crate) async fn stop(self) -> Result<(), Failure> {
        if self.stop.send(()).is_err() {
            return Err("the node ended on its own".into());
        }
        Ok(self.running.await??)
    }
}

fn capabilities(in_flight: usize) -> Capabilities {
    Capabilities { concurrency: in_flight, creates_per_second: 0, ..Capabilities::stripe() }
}

pub(crate) fn provider(mock: &MockProcess) -> Result<Arc<dyn Provider>, Failure> {
    Ok(Arc::new(StripeProvider::new(StripeConfig::new(&mock.url, "sk_test_bench".to_owned().into()))?))
}

/// Payments of their own, one for each refund, on both sides.
pub(crate) async fn add_payments(
    database: &Database,
    mock: &MockProcess,
    name: &str,
    count: usize,
) -> Result<(), Failure> {
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
            let body =
                CreateBody { intent_id: &intent_id, psp_payment_ref: &psp_payment_ref, amount, refund_reason: None };
            let create_body = provider.encode_create(&body)?;
            Ok(NewIntent {
                payment_id: PaymentId::from_stored(psp_payment_ref.clone()),
                amount,
                merchant_reference: None,
                refund_reason: None,
                psp: PSP.to_owned(),
                psp_account: ACCOUNT.to_owned(),
                psp_payment_ref,
                idempotency_key: idempotency_key(ENVIRONMENT, ACCOUNT, &intent_id),
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
