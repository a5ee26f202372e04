//! Leases in PostgreSQL keep what the conformance suite says, and what only a server has: crashes, restarts, timelines.

use crate::lease_suite::{LONG, MOST_OF_LONG, Service, keys, lease_suite, new_session, open, win};
use crate::postgres_database::{database, server};
use async_trait::async_trait;
use jobs::ids::SessionId;
use orchestrator::lease::{LeaseError, Leases, Renewal};
use orchestrator::store::migrate::migrate;
use orchestrator::store::postgres::PostgresOptions;
use orchestrator::store::postgres::leases::PostgresLeases;
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;
use testbed::Postgres;

/// Longer than a busy machine needs for anything awaited here.
const DEADLINE: Duration = Duration::from_secs(60);

struct PostgresService {
    server: &'static Postgres,
    database: String,
    leases: Arc<PostgresLeases>,
}

async fn connect(server: &Postgres, database: &str) -> PostgresLeases {
    PostgresLeases::connect(PostgresOptions::new(SecretString::from(server.url(database)))).await.unwrap()
}

async fn new_service() -> PostgresService {
    let (server, database) = (server(), database());
    let leases = Arc::new(connect(server, &database).await);
    PostgresService { server, database, leases }
}

impl PostgresService {
    fn psql(&self, sql: &str) -> String {
        self.server.must_psql(&self.database, sql).unwrap().trim().to_owned()
    }
}

#[async_trait]
impl Service for PostgresService {
    fn leases(&self) -> Arc<dyn Leases> {
        Arc::clone(&self.leases) as Arc<dyn Leases>
    }

    async fn outlive(&self, session: SessionId) {
        let gone = async {
            while self.leases.live_sessions().await.unwrap().contains(&session) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(DEADLINE, gone).await.unwrap();
    }

    async fn pass_most_of_long(&self, session: SessionId) {
        let (most, id) = (MOST_OF_LONG.as_secs(), session.0);
        self.psql(&format!(
            "UPDATE lease_sessions SET expires_at = expires_at - interval '{most} seconds' WHERE session_id = '{id}'"
        ));
    }

    async fn raise_epoch(&self) -> i64 {
        let sql = "INSERT INTO lease_epochs (epoch, backend, generation, registered_by)
                   SELECT epoch + 1, backend, generation, 'suite' FROM lease_epochs ORDER BY epoch DESC LIMIT 1;
                   SELECT max(epoch) FROM lease_epochs;";
        self.psql(sql).parse().unwrap()
    }
}

async fn fresh() -> Box<dyn Service> {
    Box::new(new_service().await)
}

lease_suite!(fresh);

async fn refusal(leases: &dyn Leases) -> String {
    match leases.open_session(new_session(), "suite", LONG).await {
        Err(LeaseError::WrongGeneration(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_empty_register_fills_itself_with_the_timeline() {
    let service = new_service().await;
    open(&*service.leases, LONG).await;
    open(&*service.leases, LONG).await;
    let register = service.psql("SELECT epoch, backend, generation, registered_by FROM lease_epochs");
    assert!(register.starts_with("1|sql|timeline 00000001 of "), "{register}");
    assert!(register.ends_with("|suite"), "{register}");
    assert_eq!(service.psql("SELECT count(*) FROM audit_log"), "0");
}

#[tokio::test]
async fn another_timeline_raises_the_epoch_by_itself_on_record() {
    let service = new_service().await;
    let (one, two) = (open(&*service.leases, LONG).await, open(&*service.leases, LONG).await);
    let old = win(&*service.leases, one, "a").await.token;
    // The register as it would look before a promotion led to this timeline.
    service.psql(
        "INSERT INTO lease_epochs (epoch, backend, generation, registered_by)
         SELECT 2, 'sql', replace(generation, 'timeline 00000001', 'timeline 00000009'), 'test' FROM lease_epochs",
    );
    let after = open(&*service.leases, LONG).await;
    assert_eq!(service.leases.live_sessions().await.unwrap(), [after]);
    for ended in [one, two] {
        assert_eq!(service.leases.renew(ended).await.unwrap(), Renewal::Lost);
    }
    let new = win(&*service.leases, after, "a").await.token;
    assert_eq!((old.epoch, new.epoch), (1, 3));
    let audit = service.psql(
        "SELECT actor, action, object, before ->> 'epoch', after ->> 'epoch', after ->> 'backend',
                length(hash), previous = repeat('0', 64) FROM audit_log",
    );
    assert_eq!(audit, "suite|lease.epoch.raise|epoch/3|2|3|sql|64|t");
    // Once is enough.
    open(&*service.leases, LONG).await;
    assert_eq!(service.psql("SELECT max(epoch), (SELECT count(*) FROM audit_log) FROM lease_epochs"), "3|1");
}

#[tokio::test]
async fn a_register_of_another_service_is_refused_and_both_are_named() {
    let service = new_service().await;
    service.psql(
        "INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (4, 'etcd', 'cluster-1', 'x')",
    );
    let text = refusal(&*service.leases).await;
    let expected =
        "epoch 4 belongs to lease service `etcd` (cluster-1); this replica uses `sql` (timeline 00000001 of ";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(service.psql("SELECT count(*) FROM lease_sessions"), "0");
}

#[tokio::test]
async fn an_empty_register_over_fences_is_refused() {
    let service = new_service().await;
    service.psql(
        "INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (1, 'sql', 'old', 'x');
         INSERT INTO payments (payment_id, psp, psp_account, psp_payment_ref, currency, captured_minor)
         VALUES ('p', 'psp', 'acct', 'ref', 'EUR', 100);
         INSERT INTO refund_intents (intent_id, payment_id, psp, psp_account, psp_payment_ref, currency, amount_minor, idempotency_key,
             create_body, machine_version, state, version, fence_epoch, fence_counter, stamp_epoch, stamp_counter, stamp_version,
             next_action, next_action_at, timeline)
         VALUES ('r', 'p', 'psp', 'acct', 'ref', 'EUR', 1, 'k', '', 1, 'recorded', 1, 0, 0, 0, 0, 1, 'create', now(), 1);
         UPDATE refund_intents SET version = 2, stamp_version = 2, fence_epoch = 1, stamp_epoch = 1, fence_counter = 1, stamp_counter = 1;
         BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM lease_epochs; COMMIT;",
    );
    let text = refusal(&*service.leases).await;
    assert!(
        text.starts_with("no lease service is registered but rows carry fences; this replica uses `sql` (timeline"),
        "{text}"
    );
}

#[tokio::test]
async fn the_counter_can_not_be_set_back_or_removed() {
    let service = new_service().await;
    let session = open(&*service.leases, LONG).await;
    win(&*service.leases, session, "a").await;
    for sql in ["UPDATE lease_counter SET counter = 0", "DELETE FROM lease_counter", "TRUNCATE lease_counter"] {
        let refused = service.server.psql(&service.database, sql).unwrap();
        assert!(refused.stderr.contains("lease_counter:"), "{sql}: {}", refused.stderr);
    }
}

#[tokio::test]
async fn holds_of_dead_sessions_are_deleted_by_the_next_listing() {
    let service = new_service().await;
    let (one, two) = (open(&*service.leases, LONG).await, open(&*service.leases, LONG).await);
    service.leases.claim(one, &keys(["a", "b"])).await.unwrap();
    let kept = win(&*service.leases, two, "c").await;
    service.psql("DELETE FROM lease_sessions WHERE session_id = (SELECT session_id FROM lease_holds WHERE resource_key = 'intent/a')");
    assert_eq!(service.psql("SELECT count(*) FROM lease_holds"), "3");
    assert_eq!(service.leases.holds(two).await.unwrap(), [kept]);
    assert_eq!(service.psql("SELECT count(*) FROM lease_holds"), "1");
}

#[tokio::test]
async fn a_killed_server_comes_back_without_sessions_and_with_its_counter() {
    let mut server = Postgres::start(testbed::PostgresOptions::default()).unwrap();
    let url = SecretString::from(server.url("postgres"));
    migrate(&url).await.unwrap();
    let leases = connect(&server, "postgres").await;
    let session = open(&leases, LONG).await;
    let old = win(&leases, session, "a").await.token;
    server.kill().unwrap();
    let error = leases.renew(session).await.unwrap_err();
    assert!(matches!(error, LeaseError::Unavailable(_)), "{error}");
    server.restart().unwrap();
    assert_eq!(leases.renew(session).await.unwrap(), Renewal::Lost);
    let session = open(&leases, LONG).await;
    assert!(win(&leases, session, "a").await.token > old);
    // An orderly restart keeps sessions and holds.
    let kept = leases.holds(session).await.unwrap();
    server.restart().unwrap();
    assert_eq!(leases.renew(session).await.unwrap(), Renewal::Renewed);
    assert_eq!(leases.holds(session).await.unwrap(), kept);
    leases.close().await;
}

#[tokio::test]
async fn a_call_whose_caller_went_away_leaves_no_transaction_open() {
    let service = new_service().await;
    let session = open(&*service.leases, LONG).await;
    for n in 0..50_u32 {
        let (name, leases) = (format!("k{n}"), Arc::clone(&service.leases));
        let keys = keys([name.as_str()]);
        let claim = leases.claim(session, &keys);
        let cut = tokio::time::timeout(Duration::from_micros(u64::from(n) * 20), claim).await;
        drop(cut);
    }
    let idle = async {
        let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                    AND pid <> pg_backend_pid() AND state <> 'idle'";
        while service.psql(open) != "0" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, idle).await.unwrap();
    // What was answered or not, the service tells.
    let held = service.leases.holds(session).await.unwrap();
    service.leases.release(session, &held).await.unwrap();
    win(&*service.leases, session, "k0").await;
}
