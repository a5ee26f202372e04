//! The PostgreSQL store keeps what the conformance suite says.

use crate::postgres_database::{database, server};
use crate::store_suite::{Engine, store_suite};
use async_trait::async_trait;
use orchestrator::store::Store;
use orchestrator::store::postgres::{PostgresOptions, PostgresStore};
use std::sync::Arc;

#[derive(Debug)]
struct PostgresEngine {
    store: Arc<PostgresStore>,
    database: String,
}

#[async_trait]
impl Engine for PostgresEngine {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    async fn raise_epoch(&self) -> i64 {
        let raise = "INSERT INTO lease_epochs (epoch, backend, generation, registered_by)
            SELECT coalesce(max(epoch), 0) + 1, 'sql', 'test', 'store suite' FROM lease_epochs RETURNING epoch";
        server().must_psql(&self.database, raise).unwrap().trim().parse().unwrap()
    }
}

async fn fresh() -> Box<dyn Engine> {
    let database = database();
    let options = PostgresOptions { max_connections: 8, ..PostgresOptions::new(server().url(&database).into()) };
    let store = Arc::new(PostgresStore::connect(options).await.unwrap());
    Box::new(PostgresEngine { store, database })
}

store_suite!(fresh);
