//! Turns configuration into parts that work.

use super::{NodeParts, Telemetry};
use crate::api::ApiProvider;
use crate::clock::Clock;
use crate::config::{Config, Database, DatabaseUrl, Psp};
use crate::psp::Provider;
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::store::sqlite::{SqliteOptions, SqlitePlace, SqliteStore};
use crate::store::{Store, StoreError, schema};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A part could not be opened; the message says which and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// Connects to the database. A SQLite file is brought up to date on the way; a PostgreSQL that lacks migrations is refused, since
/// only the owner role may run them.
pub async fn open_store(database: &Database) -> Result<Arc<dyn Store>, OpenError> {
    let failed = |error: StoreError| OpenError(error.to_string());
    match &database.url {
        DatabaseUrl::Postgres(url) => {
            let pending = schema::pending(&database.url).await.map_err(failed)?;
            if let Some(first) = pending.first() {
                let count = pending.len();
                return Err(OpenError(format!(
                    "the database lacks {count} migrations from {:04} {} on: run `orchestrator migrate` as its owner",
                    first.version, first.name
                )));
            }
            let options =
                PostgresOptions { max_connections: database.connections_max, ..PostgresOptions::new(url.clone()) };
            Ok(Arc::new(PostgresStore::connect(options).await.map_err(failed)?))
        }
        DatabaseUrl::Sqlite(path) => {
            let place = SqlitePlace::File(path.clone());
            Ok(Arc::new(SqliteStore::open(SqliteOptions { place }).await.map_err(failed)?))
        }
    }
}

/// The adapter of a configured provider.
pub fn open_provider(psp: &Psp) -> Result<Arc<dyn Provider>, OpenError> {
    Err(OpenError(format!("the adapter {} of PSP {} is not built in", psp.kind.as_str(), psp.name)))
}

/// Everything a node is made of, as configured.
pub async fn open_parts(config: &Config, clock: Arc<dyn Clock>) -> Result<NodeParts, OpenError> {
    let store = open_store(&config.database).await?;
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
        store,
        providers,
        clock,
        new_id: Arc::new(uuid::Uuid::new_v4),
        telemetry: Telemetry::new(),
        request_timeout: config.api.request_timeout,
        drain: config.worker.drain,
    })
}
