//! A hand on the SQLite file that replicas share: faults planted in a step's own transaction, and the file's one write lock.

use super::SOON;
use crate::faults_steps::Step;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};
use std::path::Path;
use std::time::Duration;

/// Rows counted to learn how fast this machine counts.
const SAMPLE_ROWS: u64 = 200_000;
/// The lock is somebody's long transaction when it can not be had for so long; everything else here commits within a few milliseconds.
const LONG_TRANSACTION: Duration = Duration::from_millis(400);

pub(crate) struct SqliteFile {
    connection: SqliteConnection,
}

impl SqliteFile {
    pub(crate) async fn open(path: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(Duration::ZERO);
        Self { connection: options.connect().await.unwrap() }
    }

    /// Makes the step's transaction fail until [`Self::mend`].
    pub(crate) async fn plant_failure(&mut self, step: Step) {
        self.plant(step, "SELECT RAISE(ABORT, 'planted fault')").await;
    }

    /// Makes the step's transaction take about so long in its middle until [`Self::mend`].
    pub(crate) async fn plant_slowness(&mut self, step: Step, takes: Duration) {
        let counting = |rows: u64| {
            format!(
                "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {rows}) SELECT max(x) FROM n"
            )
        };
        // The quickest of several: what was measured while the machine was busy would be over too soon on an idle one.
        let mut sample = Duration::MAX;
        for _ in 0..5 {
            let started = tokio::time::Instant::now();
            sqlx::query(AssertSqlSafe(counting(SAMPLE_ROWS))).fetch_one(&mut self.connection).await.unwrap();
            sample = sample.min(started.elapsed());
        }
        let rows = u128::from(SAMPLE_ROWS) * takes.as_micros() / sample.as_micros().max(1);
        // A view, since a trigger takes no WITH.
        self.change(&format!("CREATE VIEW planted_slowness AS {}", counting(u64::try_from(rows).unwrap()))).await;
        self.plant(step, "SELECT count(*) FROM planted_slowness").await;
    }

    async fn plant(&mut self, step: Step, action: &str) {
        let on = match step {
            Step::Claim => "BEFORE INSERT ON lease_holds WHEN NEW.resource_key LIKE 'intent/%'",
            Step::Install => "BEFORE INSERT ON refund_attempts",
            Step::Commit => "BEFORE INSERT ON refund_outcomes",
            Step::Release => "BEFORE DELETE ON lease_holds WHEN OLD.resource_key LIKE 'intent/%'",
            Step::Call => panic!("the call touches no file"),
        };
        self.change(&format!("CREATE TRIGGER planted {on} BEGIN {action}; END")).await;
    }

    pub(crate) async fn mend(&mut self) {
        self.change("DROP TRIGGER planted; DROP VIEW IF EXISTS planted_slowness").await;
    }

    /// In its own transaction, once the lock is free.
    async fn change(&mut self, sql: &str) {
        self.lock().await;
        self.connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
        self.connection.execute("COMMIT").await.unwrap();
    }

    async fn try_lock(&mut self) -> bool {
        match self.connection.execute("BEGIN IMMEDIATE").await {
            Ok(_) => true,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("locked"), "{text}");
                false
            }
        }
    }

    async fn lock(&mut self) {
        self.lock_when("SELECT 1").await;
    }

    /// Takes the write lock at the first moment at which `condition` selects something. It never waits in SQLite's own queue of ever
    /// longer pauses, so it is there before the next step of whoever just committed.
    pub(crate) async fn lock_when(&mut self, condition: &'static str) {
        let locked = tokio::time::timeout(SOON, async {
            loop {
                if self.try_lock().await {
                    if self.connection.fetch_optional(condition).await.unwrap().is_some() {
                        return;
                    }
                    self.connection.execute("ROLLBACK").await.unwrap();
                }
                tokio::task::yield_now().await;
            }
        });
        locked.await.unwrap_or_else(|_| panic!("the moment never came: {condition}"));
    }

    pub(crate) async fn unlock(&mut self) {
        self.connection.execute("ROLLBACK").await.unwrap();
    }

    /// Awaits a moment in the middle of somebody's long transaction.
    pub(crate) async fn somebody_is_in_the_middle(&mut self) {
        let watched = tokio::time::timeout(SOON, async {
            let mut since = tokio::time::Instant::now();
            while since.elapsed() < LONG_TRANSACTION {
                if self.try_lock().await {
                    self.unlock().await;
                    since = tokio::time::Instant::now();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        watched.await.expect("nobody holds the lock");
    }

    pub(crate) async fn count(&mut self, sql: &'static str) -> i64 {
        self.connection.fetch_one(sql).await.unwrap().get(0)
    }
}
