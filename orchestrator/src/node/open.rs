//! Turns configuration into parts that work.

use super::{NodeParts, Telemetry};
use crate::api::ApiProvider;
use crate::clock::Clock;
use crate::config::{Config, Database, DatabaseUrl, Psp, PspKind};
use crate::lease::keeper::SessionIds;
use crate::lease::{LeaseParameters, Leases};
use crate::psp::Provider;
use crate::psp::stripe::{StripeConfig, StripeProvider};
use crate::randomness::Randomness;
use crate::store::postgres::leases::PostgresLeases;
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::store::sqlite::leases::{Host, SqliteLeases};
use crate::store::sqlite::{SqliteOptions, SqlitePlace, SqliteStore};
use crate::store::{Store, StoreError, schema};
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Renewals must not queue behind bulk writes, and claims queue anyway: a few connections of their own.
const LEASE_CONNECTIONS: u32 = 4;

/// A part could not be opened; the message says which and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

/// The database and the lease service in it.
#[derive(Debug, Clone)]
pub struct OpenedDatabase {
    pub store: Arc<dyn Store>,
    pub leases: Arc<dyn Leases>,
}

/// Connects to the database. A SQLite file is brought up to date on the way; a PostgreSQL that lacks migrations is refused, since
/// only the owner role may run them.
pub async fn open_database(
    database: &Database,
    clock: Arc<dyn Clock>,
    randomness: &Randomness,
    lease: &LeaseParameters,
) -> Result<OpenedDatabase, OpenError> {
    match &database.url {
        DatabaseUrl::Postgres(url) => {
            let pending = schema::pending(&database.url).await?;
            if let Some(first) = pending.first() {
                let count = pending.len();
                return Err(OpenError(format!(
                    "the database lacks {count} migrations from {:04} {} on: run `orchestrator migrate --config FILE` as its owner",
                    first.version, first.name
                )));
            }
            open_postgres(url, database.connections_max).await
        }
        DatabaseUrl::Sqlite(path) => open_sqlite(path, clock, randomness, lease.request_timeout).await,
    }
}

async fn open_postgres(url: &SecretString, connections_max: u32) -> Result<OpenedDatabase, OpenError> {
    let with = |max_connections: u32| PostgresOptions { max_connections, ..PostgresOptions::new(url.clone()) };
    let store = Arc::new(PostgresStore::connect(with(connections_max)).await?);
    let leases = Arc::new(PostgresLeases::connect(with(LEASE_CONNECTIONS)).await?);
    Ok(OpenedDatabase { store, leases })
}

async fn open_sqlite(
    path: &Path,
    clock: Arc<dyn Clock>,
    randomness: &Randomness,
    call_timeout: Duration,
) -> Result<OpenedDatabase, OpenError> {
    let store = SqliteStore::open(SqliteOptions { place: SqlitePlace::File(path.to_owned()) }).await?;
    let host =
        Host::here(randomness.uuid()).map_err(|error| OpenError(format!("this host has no boot id: {error}")))?;
    let leases = Arc::new(SqliteLeases::of_store(&store, clock, &host, call_timeout));
    Ok(OpenedDatabase { store: Arc::new(store), leases })
}

/// The adapter of a configured provider.
pub fn open_provider(psp: &Psp) -> Result<Arc<dyn Provider>, OpenError> {
    let PspKind::Stripe = psp.kind;
    let mut config = StripeConfig::new(&psp.base_url, psp.api_key.clone());
    config.answer_timeout = psp.capabilities.timeout.to_std().unwrap_or(config.answer_timeout);
    config.wire_amounts = psp.capabilities.wire_amounts.clone();
    let provider = StripeProvider::new(config).map_err(|error| OpenError(format!("PSP {}: {error}", psp.name)))?;
    Ok(Arc::new(provider))
}

/// The times of a session: renewed three times in a TTL, a hold as long as the slowest PSP's step may take.
pub fn lease_parameters(config: &Config) -> Result<LeaseParameters, OpenError> {
    let ttl = config.lease.ttl;
    let hold_max = config.psps.iter().filter_map(|psp| psp.capabilities.hold_max.to_std().ok()).max();
    let parameters = LeaseParameters {
        ttl,
        margin: config.lease.margin,
        renew_every: ttl / 3,
        request_timeout: ttl / 5,
        hold_max: hold_max.unwrap_or(LeaseParameters::default().hold_max),
    };
    parameters.validate().map_err(|error| OpenError(error.to_string()))
}

/// Everything a node is made of, as configured.
pub async fn open_parts(config: &Config, clock: Arc<dyn Clock>) -> Result<NodeParts, OpenError> {
    let randomness = Arc::new(Randomness::from_os());
    let lease_parameters = lease_parameters(config)?;
    let opened = open_database(&config.database, clock.clone(), &randomness, &lease_parameters).await?;
    let mut providers = BTreeMap::new();
    for psp in &config.psps {
        let provider = ApiProvider {
            provider: open_provider(psp)?,
            account: psp.account.clone(),
            kind: psp.kind.as_str(),
            capabilities: psp.capabilities.clone(),
        };
        providers.insert(psp.name.clone(), provider);
    }
    Ok(NodeParts {
        environment: config.environment.clone(),
        store: opened.store,
        providers,
        clock,
        leases: opened.leases,
        lease_parameters,
        label: label(),
        randomness,
        session_ids: SessionIds::from_os(),
        telemetry: Telemetry::new(),
        request_timeout: config.api.request_timeout,
        worker: config.worker,
    })
}

/// Host name and process id.
fn label() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "unnamed host" } else { host.trim() };
    format!("{host}/{}", std::process::id())
}
