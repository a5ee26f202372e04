//! Leases in a SQLite file keep what the conformance suite says, and what only one host has: boots, and the file's own identity.

use crate::lease_suite::{LONG, MOST_OF_LONG, SHORT, Service, claim, lease_suite, open, win};
use crate::store_sqlite::{open_temporary, sqlite3};
use async_trait::async_trait;
use chrono::DateTime;
use jobs::ids::SessionId;
use orchestrator::clock::{Clock, SimulatedClock};
use orchestrator::lease::{Claim, Leases, Renewal};
use orchestrator::store::sqlite::SqliteStore;
use orchestrator::store::sqlite::leases::{Host, SqliteLeases};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const CALL_TIMEOUT: Duration = Duration::from_secs(60);

struct SqliteService {
    store: SqliteStore,
    clock: Arc<SimulatedClock>,
    host: Host,
}

impl SqliteService {
    async fn new() -> Self {
        let host = Host { boot_id: "first boot".to_owned(), generation: Uuid::from_u128(7) };
        Self { store: open_temporary().await, clock: Arc::new(SimulatedClock::new(DateTime::UNIX_EPOCH)), host }
    }

    fn on(&self, host: &Host) -> SqliteLeases {
        SqliteLeases::of_store(&self.store, Arc::clone(&self.clock) as Arc<dyn Clock>, host, CALL_TIMEOUT)
    }
}

#[async_trait]
impl Service for SqliteService {
    fn leases(&self) -> Arc<dyn Leases> {
        Arc::new(self.on(&self.host))
    }

    async fn outlive(&self, _session: SessionId) {
        self.clock.advance(SHORT);
    }

    async fn pass_most_of_long(&self, _session: SessionId) {
        self.clock.advance(MOST_OF_LONG);
    }

    async fn raise_epoch(&self) -> i64 {
        let sql = "INSERT INTO lease_epochs (epoch, backend, generation, registered_by)
                   SELECT max(epoch) + 1, backend, generation, 'suite' FROM lease_epochs;
                   SELECT max(epoch) FROM lease_epochs;";
        sqlite3(self.store.file(), sql).unwrap().trim().parse().unwrap()
    }
}

async fn fresh() -> Box<dyn Service> {
    Box::new(SqliteService::new().await)
}

lease_suite!(fresh);

#[tokio::test]
async fn sessions_of_another_boot_are_dead_and_their_holds_free() {
    let service = SqliteService::new().await;
    let before = service.leases();
    let session = open(&*before, LONG).await;
    let old = win(&*before, session, "a").await;
    let after = service.on(&Host { boot_id: "second boot".to_owned(), ..service.host.clone() });
    assert_eq!(after.live_sessions().await.unwrap(), []);
    assert_eq!(after.renew(session).await.unwrap(), Renewal::Lost);
    let next = open(&after, LONG).await;
    assert!(win(&after, next, "a").await.token > old.token);
}

#[tokio::test]
async fn the_first_identity_of_the_file_stays() {
    let service = SqliteService::new().await;
    open(&*service.leases(), LONG).await;
    let other = service.on(&Host { generation: Uuid::from_u128(8), ..service.host.clone() });
    open(&other, LONG).await;
    let register = sqlite3(service.store.file(), "SELECT epoch, backend, generation FROM lease_epochs").unwrap();
    assert_eq!(register.trim(), format!("1|sql|{}", Uuid::from_u128(7)));
}

#[tokio::test]
async fn a_file_that_belongs_to_another_service_is_refused_by_name() {
    let service = SqliteService::new().await;
    let sql =
        "INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (3, 'etcd', 'cluster-1', 'test')";
    sqlite3(service.store.file(), sql).unwrap();
    let refused = service.leases().open_session(SessionId(Uuid::from_u128(1)), "suite", LONG).await.unwrap_err();
    let expected = format!(
        "epoch 3 belongs to lease service `etcd` (cluster-1); this replica uses `sql` ({})",
        Uuid::from_u128(7)
    );
    assert_eq!(refused.to_string(), expected);
}

#[tokio::test]
async fn two_processes_on_one_file_exclude_each_other() {
    let service = SqliteService::new().await;
    let (one, two) = (service.leases(), service.on(&service.host));
    let (first, second) = (open(&*one, LONG).await, open(&two, LONG).await);
    win(&*one, first, "a").await;
    assert_eq!(claim(&two, second, ["a"]).await, [Claim::Taken]);
    assert_eq!(one.live_sessions().await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_counter_can_not_be_set_back_or_removed() {
    let service = SqliteService::new().await;
    let session = open(&*service.leases(), LONG).await;
    win(&*service.leases(), session, "a").await;
    for sql in [
        "UPDATE lease_counter SET counter = 0",
        "DELETE FROM lease_counter",
        "REPLACE INTO lease_counter (only_row, counter) VALUES (1, 0)",
    ] {
        let refused = sqlite3(service.store.file(), sql).unwrap_err();
        assert!(refused.contains("lease_counter:"), "{sql}: {refused}");
    }
}
