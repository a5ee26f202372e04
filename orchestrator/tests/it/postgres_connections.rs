//! What becomes of connections when the server, or the caller, goes away in the middle.

use crate::postgres_database::{database, server};
use crate::store_suite::fixture::{cancel, euro, new_intent, new_payment};
use orchestrator::store::postgres::{PostgresOptions, PostgresStore};
use orchestrator::store::submit::{ImportResult, SubmitResult};
use orchestrator::store::{Store, StoreError, migrate};
use std::time::Duration;
use testbed::Postgres;

async fn store_on(server: &Postgres, database: &str) -> PostgresStore {
    let options = PostgresOptions {
        max_connections: 4,
        lock_timeout: Duration::from_millis(300),
        ..PostgresOptions::new(server.url(database).into())
    };
    PostgresStore::connect(options).await.unwrap()
}

/// Opens all connections of the pool at once, so that all of them break.
async fn fill_pool(store: &PostgresStore) {
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.backlog().await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_the_server_reads_and_writes_go_on_at_once() {
    let mut server = Postgres::start(testbed::PostgresOptions::default()).unwrap();
    let name = server.create_database().unwrap();
    migrate::migrate(&server.url(&name).into()).await.unwrap();
    let store = store_on(&server, &name).await;
    fill_pool(&store).await;
    server.restart().unwrap();
    assert_eq!(store.payment(&new_payment("p-1", euro(1)).payment_id).await.unwrap(), None);
    server.restart().unwrap();
    assert_eq!(store.import_payments(&[new_payment("p-1", euro(1))]).await.unwrap(), [ImportResult::Inserted]);
    server.stop().unwrap();
    assert!(matches!(store.now().await, Err(StoreError::Unavailable(_))));
    server.restart().unwrap();
    assert!(store.now().await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_became_read_only_is_unavailable_until_it_writes_again() {
    let name = database();
    let read_only = |on: bool| {
        let alter = format!("ALTER DATABASE {name} SET default_transaction_read_only = {on}");
        server().must_psql("postgres", &alter).unwrap();
    };
    read_only(true);
    let store = store_on(server(), &name).await;
    let payments = [new_payment("p-1", euro(1))];
    assert!(matches!(store.import_payments(&payments).await, Err(StoreError::Unavailable(_))));
    read_only(false);
    // The connection that could not write was closed; a new one can.
    assert_eq!(store.import_payments(&payments).await.unwrap(), [ImportResult::Inserted]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_a_whole_transaction_and_no_open_one() {
    let name = database();
    let store = store_on(server(), &name).await;
    for number in 0..40_u64 {
        let call = {
            let store = store.clone();
            async move { store.import_payments(&[new_payment(&format!("p-{number}"), euro(1))]).await }
        };
        // Cut off at ever later points; which one is up to the machine, and all must be fine.
        let cut_off = tokio::time::timeout(Duration::from_micros(number * 50), call).await;
        drop(cut_off);
    }
    fill_pool(&store).await;
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(server().must_psql(&name, open).unwrap(), "0\n");
    // Every one of them was begun, so it also ended: the task goes on without its caller.
    let again: Vec<_> = (0..40).map(|number| new_payment(&format!("p-{number}"), euro(1))).collect();
    assert!(store.import_payments(&again).await.unwrap().iter().all(|result| *result != ImportResult::Conflict));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_locked_by_someone_else_is_given_up_after_the_lock_timeout() {
    let name = database();
    let store = store_on(server(), &name).await;
    assert_eq!(store.import_payments(&[new_payment("p-1", euro(500))]).await.unwrap(), [ImportResult::Inserted]);
    let locked = {
        let name = name.clone();
        tokio::task::spawn_blocking(move || {
            server().must_psql(&name, "BEGIN; SELECT 1 FROM payments FOR UPDATE; SELECT pg_sleep(2); COMMIT;")
        })
    };
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    testbed::wait("the lock to be held", Duration::from_secs(20), || {
        (server().must_psql(&name, waiting).unwrap() == "1\n").then_some(())
    })
    .unwrap();
    let refund = || new_intent("r-1", "p-1", euro(1));
    assert!(matches!(store.submit(&[refund()]).await, Err(StoreError::Unavailable(_))));
    locked.await.unwrap().unwrap();
    assert!(matches!(store.submit(&[refund()]).await.unwrap().as_slice(), [SubmitResult::Created(_)]));
    assert_eq!(store.append_inbox(&[cancel("r-1", "s-1")]).await.unwrap().len(), 1);
}
