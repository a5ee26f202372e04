//! The memory store keeps what the conformance suite says, and refuses writes that go past its filters.

use crate::store_suite::fixture::{Fixture, PSP, assert_refused, euro, intent_id};
use crate::store_suite::{Engine, store_suite};
use async_trait::async_trait;
use chrono::DateTime;
use jobs::ids::Token;
use orchestrator::clock::SimulatedClock;
use orchestrator::store::audit::{FIRST_PREVIOUS, chain_hash};
use orchestrator::store::memory::{IntentRow, MemoryStore, NewEpoch};
use orchestrator::store::{Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

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

#[tokio::test]
async fn fences_hold_for_writers_without_manners() {
    let engine = MemoryEngine::new();
    let store = Arc::clone(&engine.0);
    let fixture = Fixture::new(Box::new(engine)).await;
    fixture.intent("r-1").await;
    fixture.install("r-1", 5).await;
    let stored = store.row(&intent_id("r-1")).unwrap();
    // A further step of the hold, written right.
    let next = IntentRow { stamp_version: stored.intent.version + 1, ..stored.clone() };
    let next = IntentRow { intent: jobs::refund::intent::Intent { version: 3, ..next.intent }, ..next };
    let check = |rule: &str, alter: fn(&mut IntentRow)| {
        let mut row = next.clone();
        alter(&mut row);
        assert_refused(&store.write_as_anyone(row), rule);
        assert_eq!(store.row(&intent_id("r-1")).unwrap(), stored, "{rule}");
    };
    check("refund_intents_identity", |row| row.intent.amount = euro(1));
    check("refund_intents_identity", |row| row.intent.idempotency_key.push('x'));
    check("refund_intents_identity", |row| row.intent.create_body.push(0));
    check("refund_intents_identity", |row| row.intent.created_at += Duration::from_secs(1));
    check("refund_intents_identity", |row| row.intent.merchant_reference = None);
    check("refund_intents_version", |row| row.intent.version = 2);
    check("refund_intents_version", |row| row.intent.version = 4);
    check("refund_intents_no_token", |row| row.stamp_version = 2);
    check("refund_intents_stale_token", |row| {
        row.stamp.counter = 4;
        row.intent.fence.counter = 4;
    });
    check("refund_intents_stale_token", |row| {
        row.stamp = Token { epoch: row.stamp.epoch - 1, counter: 900 };
        row.intent.fence = row.stamp;
    });
    check("refund_intents_stale_token", |row| row.stamp = Token::NONE);
    check("refund_intents_fence_is_stamp", |row| row.stamp.counter = 6);
    check("refund_intents_sending_is_open", |row| {
        row.intent.open_attempt = None;
        row.intent.holder_session = None;
    });
    store.write_as_anyone(next.clone()).unwrap();
    assert_eq!(store.row(&intent_id("r-1")), Some(next.clone()));
    let mut stranger = next;
    stranger.intent.intent_id = intent_id("r-2");
    assert!(matches!(store.write_as_anyone(stranger), Err(StoreError::Refused(_))));
}

#[tokio::test]
async fn the_audit_log_is_one_chain() {
    let store = MemoryEngine::new().0;
    store.pause_psp(PSP, "ann", "answers with 500").await.unwrap();
    store.pause_psp(PSP, "bob", "still does").await.unwrap();
    assert!(store.resume_psp(PSP, "ann", "healthy again").await.unwrap());
    assert!(!store.resume_psp(PSP, "ann", "healthy again").await.unwrap());
    let rows = store.audit();
    let seen: Vec<_> = rows.iter().map(|row| (row.audit_id, row.action, row.actor.as_str())).collect();
    assert_eq!(seen, [(1, "psp.pause", "ann"), (2, "psp.pause", "bob"), (3, "psp.resume", "ann")]);
    let mut previous = FIRST_PREVIOUS.to_owned();
    for row in rows {
        assert_eq!((&row.previous, &row.hash), (&previous, &chain_hash(&previous, &row.entry())));
        previous = row.hash;
    }
}

#[tokio::test]
async fn a_fresh_store_knows_the_memory_lease_service() {
    let store = MemoryEngine::new().0;
    assert_eq!(store.current_epoch(), 1);
    let next = NewEpoch { backend: "memory", generation: "second", highest_revision: 7, registered_by: "ann" };
    assert_eq!(store.register_epoch(&next), 2);
    store.raise_revision_mark(9);
    store.raise_revision_mark(8);
    let register = store.epochs();
    let seen: Vec<_> =
        register.iter().map(|epoch| (epoch.epoch, epoch.generation.as_str(), epoch.highest_revision)).collect();
    assert_eq!(seen, [(1, "memory", 0), (2, "second", 9)]);
}
