//! Leases in memory keep what the conformance suite says.

use crate::lease_suite::{MOST_OF_LONG, SHORT, Service, lease_suite};
use async_trait::async_trait;
use chrono::DateTime;
use jobs::ids::SessionId;
use orchestrator::clock::SimulatedClock;
use orchestrator::lease::{Leases, MemoryLeases};
use std::sync::Arc;

struct MemoryService {
    leases: Arc<MemoryLeases>,
    clock: Arc<SimulatedClock>,
}

#[async_trait]
impl Service for MemoryService {
    fn leases(&self) -> Arc<dyn Leases> {
        Arc::clone(&self.leases) as Arc<dyn Leases>
    }

    async fn outlive(&self, _session: SessionId) {
        self.clock.advance(SHORT);
    }

    async fn pass_most_of_long(&self, _session: SessionId) {
        self.clock.advance(MOST_OF_LONG);
    }

    async fn raise_epoch(&self) -> i64 {
        self.leases.raise_epoch()
    }
}

async fn fresh() -> Box<dyn Service> {
    let clock = Arc::new(SimulatedClock::new(DateTime::UNIX_EPOCH));
    Box::new(MemoryService { leases: Arc::new(MemoryLeases::new(Arc::clone(&clock) as _)), clock })
}

lease_suite!(fresh);
