//! What the database and impatient callers can do to a replica: aborted requests in thousands, and a server that only reads.

use crate::faults_site::{Database, Replica, Setup, Site, judge_posted_once, until};
use crate::postgres_database::server;
use psp_mock::Config;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const ABORTED: usize = 5_000;
/// Callers at once; more would only fill the accept queue.
const CALLERS: usize = 50;
const THEN: usize = 100;
const PAYMENTS: usize = 100;

/// Sends a submit and hangs up after 1 to 50 ms, whatever has come until then.
async fn hang_up(port: u16, at: usize) {
    let body = serde_json::json!({ "intent_id": format!("gone-{at}"), "payment_id": format!("p-{}", at % PAYMENTS),
        "amount_minor": "1", "currency": "EUR" })
    .to_string();
    let request = format!(
        "POST /v1/refunds HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // A refused connection is an aborted request as well.
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await {
        stream.write_all(request.as_bytes()).await.ok();
        tokio::time::sleep(Duration::from_millis(1 + (at as u64 * 7) % 50)).await;
    }
}

async fn storm(replica: &Replica) {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let port = replica.port;
        callers.spawn(async move {
            for at in (caller..ABORTED).step_by(CALLERS) {
                hang_up(port, at).await;
            }
        });
    }
    callers.join_all().await;
}

async fn sql(database: &str, text: &'static str) -> String {
    let database = database.to_owned();
    tokio::task::spawn_blocking(move || server().must_psql(&database, text)).await.unwrap().unwrap()
}

fn name(site: &Site) -> String {
    match &site.database {
        Database::Postgres { name } => name.clone(),
        Database::Sqlite { .. } => unreachable!(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_callers_who_hang_up_leave_a_pool_of_five_in_order() {
    let site = Site::postgres(Config::default()).await;
    let a = site.replica(Setup { connections_max: 5, ..Setup::default() }).await;
    let payments: Vec<String> = (0..PAYMENTS).map(|at| format!("p-{at}")).collect();
    site.payments(&a, &payments, 1_000_000, "EUR").await;
    storm(&a).await;
    for at in 0..THEN {
        let reply = a.refund(&format!("kept-{at}"), &format!("p-{at}"), 1, "EUR").await;
        assert_eq!(reply.status, 202, "{reply:?}");
    }
    let database = name(&site);
    let idle = sql(
        &database,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
         AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '5 s'",
    );
    assert_eq!(idle.await.trim(), "0");
    let sessions = sql(
        &database,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrator'",
    );
    // Five, and those of the leases.
    assert!(sessions.await.trim().parse::<u32>().unwrap() <= 9);
    assert_eq!(a.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_only_reads_is_written_again_within_30_seconds_after_it_takes_writes() {
    let site = Site::postgres(Config::default()).await;
    let a = site.replica(Setup::default()).await;
    site.payments(&a, &["p-1".to_owned(), "p-2".to_owned(), "p-3".to_owned()], 10_000, "EUR").await;
    a.submit("r-1", "p-1", 1_000, "EUR").await;
    judge_posted_once(&site, &a, "r-1", 1_000).await;
    let database = name(&site);
    // For new sessions by the setting, for open ones by ending them: they come back read-only.
    let switch = |to: &'static str| {
        let database = database.clone();
        async move {
            let text = format!("ALTER DATABASE \"{database}\" SET default_transaction_read_only = {to}");
            tokio::task::spawn_blocking(move || server().must_psql("postgres", &text)).await.unwrap().unwrap();
        }
    };
    switch("on").await;
    sql(
        &database,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await;
    let refused = a.refund("r-2", "p-2", 1_000, "EUR").await;
    assert!(refused.status >= 500, "{refused:?}");
    switch("off").await;
    // Sessions that were opened meanwhile stay read-only for as long as they live.
    let written = tokio::time::timeout(
        Duration::from_secs(30),
        until("a write", || async { (a.refund("r-3", "p-3", 1_000, "EUR").await.status == 202).then_some(()) }),
    );
    written.await.expect("writes are stuck on read-only sessions");
    judge_posted_once(&site, &a, "r-3", 1_000).await;
}
