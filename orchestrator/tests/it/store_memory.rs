//! The memory store keeps what the conformance suite says.

use crate::store_suite::{Engine, store_suite};
use async_trait::async_trait;
use chrono::DateTime;
use orchestrator::clock::SimulatedClock;
use orchestrator::store::Store;
use orchestrator::store::memory::{MemoryStore, NewEpoch};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct MemoryEngine(pub(crate) Arc<MemoryStore>);

impl MemoryEngine {
    /// Its clock stands still, so all rows of a test are equally old: order must come from ids.
    pub(crate) fn new() -> Self {
        let start = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        Self(Arc::new(MemoryStore::new(Arc::new(SimulatedClock::new(start)))))
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0) as Arc<dyn Store>
    }

    async fn raise_epoch(&self) -> i64 {
        let generation =
            NewEpoch { backend: "memory", generation: "test", highest_revision: 0, registered_by: "store suite" };
        self.0.register_epoch(&generation)
    }
}

async fn fresh() -> Box<dyn Engine> {
    Box::new(MemoryEngine::new())
}

store_suite!(fresh);
