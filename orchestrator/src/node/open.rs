//! Turns configuration into parts that work.

use super::{NodeParts, Telemetry};
use crate::api::ApiProvider;
use crate::clock::Clock;
use crate::config::{Config, Database, DatabaseUrl, Psp};
use crate::psp::Provider;
use crate::store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A part could not be opened; the message says which and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// Connects to the database; migrations are `migrate`'s.
pub async fn open_store(database: &Database, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
    drop(clock);
    match &database.url {
        DatabaseUrl::Postgres(_) => Err(OpenError("PostgreSQL is not built in".to_owned())),
        DatabaseUrl::Sqlite(_) => Err(OpenError("SQLite is not built in".to_owned())),
    }
}

/// The adapter of a configured provider.
pub fn open_provider(psp: &Psp) -> Result<Arc<dyn Provider>, OpenError> {
    Err(OpenError(format!("the adapter {} of PSP {} is not built in", psp.kind.as_str(), psp.name)))
}

/// Everything a node is made of, as configured.
pub async fn open_parts(config: &Config, clock: Arc<dyn Clock>) -> Result<NodeParts, OpenError> {
    let store = open_store(&config.database, clock.clone()).await?;
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
