//! The SQLite store keeps what the conformance suite says, and what only one file can get wrong: locks, races to open it, callers
//! that go away.

use crate::store_suite::fixture::{euro, money, new_intent, new_payment, payment_id};
use crate::store_suite::{Engine, store_suite};
use async_trait::async_trait;
use orchestrator::store::sqlite::{SqliteOptions, SqlitePlace, SqliteStore};
use orchestrator::store::submit::{ImportResult, SubmitResult};
use orchestrator::store::{Store, StoreError};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

pub(crate) async fn open_temporary() -> SqliteStore {
    SqliteStore::open(SqliteOptions { place: SqlitePlace::Temporary }).await.unwrap()
}

async fn open_file(file: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(SqliteOptions { place: SqlitePlace::File(file.to_owned()) }).await
}

/// Runs Debian's `sqlite3` on a database file; what it printed, or why it refused.
pub(crate) fn sqlite3(file: &Path, sql: &str) -> Result<String, String> {
    let output = Command::new("sqlite3")
        .args(["-batch", "-bail", "-cmd", ".timeout 30000"])
        .arg(file)
        .arg(sql)
        .stdin(Stdio::null())
        .output()
        .expect("the program sqlite3 is needed: apt-get install sqlite3");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

pub(crate) struct SqliteEngine(pub(crate) Arc<SqliteStore>);

#[async_trait]
impl Engine for SqliteEngine {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0) as Arc<dyn Store>
    }

    async fn raise_epoch(&self) -> i64 {
        let sql = "INSERT INTO lease_epochs (epoch, backend, generation, registered_by)
                   SELECT coalesce(max(epoch), 0) + 1, 'sql', 'test', 'store suite' FROM lease_epochs;
                   SELECT max(epoch) FROM lease_epochs;";
        sqlite3(self.0.file(), sql).unwrap().trim().parse().unwrap()
    }
}

async fn fresh() -> Box<dyn Engine> {
    Box::new(SqliteEngine(Arc::new(open_temporary().await)))
}

store_suite!(fresh);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_writers_of_two_handles_never_see_a_locked_database() {
    let store = Arc::new(open_temporary().await);
    let second = Arc::new(open_file(store.file()).await.unwrap());
    let imported = store.import_payments(&[new_payment("p-1", euro(80_000))]).await.unwrap();
    assert_eq!(imported, [ImportResult::Inserted]);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let store = Arc::clone(if writer % 2 == 0 { &store } else { &second });
        writers.spawn(async move {
            for number in 0..50 {
                let intent = new_intent(&format!("r-{writer}-{number}"), "p-1", euro(100));
                let results = store.submit(&[intent]).await.unwrap();
                assert!(matches!(results[..], [SubmitResult::Created(_)]), "{results:?}");
            }
        });
    }
    writers.join_all().await;
    let payment = store.payment(&payment_id("p-1")).await.unwrap().unwrap();
    assert_eq!((payment.reserved_minor, payment.refundable_minor()), (80_000, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_no_transaction_open() {
    let store = Arc::new(open_temporary().await);
    assert_eq!(store.import_payments(&[new_payment("p-1", euro(80_000))]).await.unwrap(), [ImportResult::Inserted]);
    for number in 0..100 {
        let intents = [new_intent(&format!("r-{number}"), "p-1", euro(100))];
        let mut call = store.submit(&intents);
        // Some calls are dropped before they start, some in the middle; which depends on the other threads.
        for _ in 0..number % 4 {
            match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => assert_eq!(result.unwrap().len(), 1),
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
    }
    let last = store.submit(&[new_intent("r-last", "p-1", euro(100))]).await.unwrap();
    assert!(matches!(last[..], [SubmitResult::Created(_)]), "{last:?}");
    // Calls that were dropped may still be at work; each is there with its reservation or not at all.
    let sql = "SELECT p.reserved_minor = 100 * (SELECT count(*) FROM refund_intents) FROM payments p";
    assert_eq!(sqlite3(store.file(), sql).unwrap(), "1\n");
}

/// Set in the processes that the next test starts.
const OPEN_THIS: &str = "STORE_SQLITE_OPEN_THIS";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_open_a_new_file_at_once_all_succeed() {
    if let Some(file) = std::env::var_os(OPEN_THIS) {
        let store = open_file(Path::new(&file)).await.unwrap();
        assert!(store.backlog().await.unwrap().states.is_empty());
        return;
    }
    let neighbour = open_temporary().await;
    let file = neighbour.file().with_file_name("raced.sqlite");
    let name = "store_sqlite::processes_that_open_a_new_file_at_once_all_succeed";
    let children: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .env(OPEN_THIS, &file)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && told.contains("1 passed"),
            "{told}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(sqlite3(&file, "SELECT count(*) FROM refund_intents").unwrap(), "0\n");
}

#[tokio::test]
async fn amounts_beyond_what_a_float_holds_keep_every_digit() {
    let store = open_temporary().await;
    for (name, minor) in [("p-float", 9_007_199_254_740_993), ("p-largest", i64::MAX)] {
        let payment = new_payment(name, money(minor, "JPY"));
        assert_eq!(store.import_payments(&[payment]).await.unwrap(), [ImportResult::Inserted]);
        let results = store.submit(&[new_intent(name, name, money(minor, "JPY"))]).await.unwrap();
        assert!(matches!(&results[..], [SubmitResult::Created(intent)] if intent.amount.minor == minor), "{results:?}");
        let payment = store.payment(&payment_id(name)).await.unwrap().unwrap();
        assert_eq!((payment.reserved_minor, payment.refundable_minor()), (minor, 0));
        let sql = format!("SELECT amount_minor, typeof(amount_minor) FROM refund_intents WHERE intent_id = '{name}'");
        assert_eq!(sqlite3(store.file(), &sql).unwrap(), format!("{minor}|integer\n"));
    }
}

#[tokio::test]
async fn a_file_that_was_closed_is_whole_without_its_log() {
    let neighbour = open_temporary().await;
    let file = neighbour.file().with_file_name("closed.sqlite");
    let store = open_file(&file).await.unwrap();
    assert_eq!(store.import_payments(&[new_payment("p-1", euro(5))]).await.unwrap(), [ImportResult::Inserted]);
    store.close().await;
    assert!(matches!(store.now().await, Err(StoreError::Unavailable(_))));
    assert!(!file.with_file_name("closed.sqlite-wal").exists());
    let again = open_file(&file).await.unwrap();
    assert_eq!(again.payment(&payment_id("p-1")).await.unwrap().unwrap().captured, euro(5));
}

#[tokio::test]
async fn a_temporary_database_goes_with_its_store() {
    let store = open_temporary().await;
    let folder = store.file().parent().unwrap().to_owned();
    assert!(folder.exists());
    store.close().await;
    drop(store);
    assert!(!folder.exists());
}

#[tokio::test]
async fn every_line_of_the_audit_log_follows_from_the_one_before() {
    let store = open_temporary().await;
    store.pause_psp("acme", "ann", "they are down").await.unwrap();
    store.pause_psp("acme", "bob", "still down").await.unwrap();
    assert!(store.resume_psp("acme", "ann", "they are back").await.unwrap());
    assert!(!store.resume_psp("acme", "ann", "again").await.unwrap());
    let sql = "SELECT a.audit_id, a.action, a.actor, a.before ->> 'reason', a.after ->> 'reason', a.previous = coalesce(b.hash, a.previous)
               FROM audit_log a LEFT JOIN audit_log b ON b.audit_id = a.audit_id - 1 ORDER BY a.audit_id";
    let told = sqlite3(store.file(), sql).unwrap();
    let expected = "1|psp.pause|ann||they are down|1\n2|psp.pause|bob|they are down|still down|1\n3|psp.resume|ann|still down||1\n";
    assert_eq!(told, expected);
}
