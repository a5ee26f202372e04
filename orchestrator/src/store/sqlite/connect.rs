//! The connections of one database file: one that writes, a few that read, and how errors of the engine read to callers.
//!
//! Every write is `BEGIN IMMEDIATE` on the one writer connection, so writers of this process queue in order and writers of other
//! processes wait in SQLite's busy handler; reads are snapshots and wait for nobody. Each transaction runs in a task of its own: a
//! caller that is dropped in the middle leaves no transaction open, the task ends it. A connection whose transaction failed for
//! another reason than a constraint is closed and not used again.
//!
//! Across a crash: WAL with synchronous FULL, so what was committed is there. Left out: network file systems, whose locks lie.

use crate::store::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqlitePool};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

/// Readers beside the writer: a page of the console, an export, and the worker's `due` and `load`.
const READERS_MAX: u32 = 4;

/// How long SQLite waits for a writer in another process, and a caller for the one writer connection, before it gives up.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Switching a new file to WAL does not wait for others, so opening is tried again; together about as long as `WAIT_MAX`.
const OPEN_TRIES_MAX: u32 = 300;
const OPEN_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The steps of one transaction, boxed because they borrow its connection.
pub(in crate::store) type Steps<'c, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'c>>;

/// The connections to one file.
#[derive(Debug, Clone)]
pub(in crate::store) struct Connections {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl Connections {
    /// Opens the file, creating it if there is none.
    pub(super) async fn open(path: &Path) -> Result<Self, StoreError> {
        let common = SqliteConnectOptions::new()
            .filename(path)
            .foreign_keys(true)
            .busy_timeout(WAIT_MAX)
            .synchronous(SqliteSynchronous::Full);
        let writing = common.clone().create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
        let lasting = || {
            SqlitePoolOptions::new()
                .acquire_timeout(WAIT_MAX)
                .test_before_acquire(false)
                .idle_timeout(None)
                .max_lifetime(None)
        };
        let mut tries = 1;
        let writer = loop {
            match lasting().max_connections(1).min_connections(1).connect_with(writing.clone()).await {
                Ok(pool) => break pool,
                Err(error) if is_busy(&error) && tries < OPEN_TRIES_MAX => {
                    tries += 1;
                    tokio::time::sleep(OPEN_RETRY_PAUSE).await;
                }
                Err(error) => return Err(store_error(error)),
            }
        };
        let readers = lasting().max_connections(READERS_MAX).connect_lazy_with(common.pragma("query_only", "ON"));
        Ok(Self { writer, readers })
    }

    /// The pool with the one writer connection. Begin with `BEGIN IMMEDIATE`, or use [`Self::write`], which does.
    #[expect(dead_code, reason = "the way in for sql leases; the expectation goes when they come")]
    pub(in crate::store) const fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    /// Ends all connections; the last one folds the log into the file.
    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// One writing transaction, whole or not at all, even if the caller is dropped meanwhile.
    pub(in crate::store) async fn write<T, F>(&self, steps: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> Steps<'c, T> + Send + 'static,
    {
        in_own_task(self.writer.clone(), "BEGIN IMMEDIATE", steps).await
    }

    /// Several reads of one moment.
    pub(in crate::store) async fn read<T, F>(&self, steps: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> Steps<'c, T> + Send + 'static,
    {
        in_own_task(self.readers.clone(), "BEGIN DEFERRED", steps).await
    }
}

async fn in_own_task<T, F>(pool: SqlitePool, begin: &'static str, steps: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> Steps<'c, T> + Send + 'static,
{
    let task = tokio::spawn(async move {
        let mut connection = pool.acquire().await.map_err(store_error)?;
        let result = transaction(&mut connection, begin, steps).await;
        if matches!(result, Err(StoreError::Unavailable(_))) {
            // SQLite may have rolled back by itself; what the driver thinks of the connection is not worth knowing.
            connection.close_on_drop();
        }
        result
    });
    match task.await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Unavailable(format!("the transaction's task ended: {error}"))),
    }
}

async fn transaction<T, F>(
    connection: &mut PoolConnection<Sqlite>,
    begin: &'static str,
    steps: F,
) -> Result<T, StoreError>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> Steps<'c, T>,
{
    let mut transaction = connection.begin_with(begin).await.map_err(store_error)?;
    match steps(&mut transaction).await {
        Ok(value) => {
            transaction.commit().await.map_err(store_error)?;
            Ok(value)
        }
        Err(error) => {
            transaction.rollback().await.map_err(store_error)?;
            Err(error)
        }
    }
}

/// The engine's primary result codes, the low byte of what it reports.
const SQLITE_ERROR: i64 = 1;
const SQLITE_BUSY: i64 = 5;
const SQLITE_CONSTRAINT: i64 = 19;

fn primary_code(error: &sqlx::Error) -> Option<i64> {
    let code: i64 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

fn is_busy(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(SQLITE_BUSY)
}

/// What an error of the engine means for the caller.
pub(in crate::store) fn store_error(error: sqlx::Error) -> StoreError {
    match (&error, primary_code(&error)) {
        // A constraint or trigger, or a statement that can not run: nothing was written, and sending it again does not help.
        (sqlx::Error::Database(database), Some(SQLITE_CONSTRAINT | SQLITE_ERROR)) => {
            StoreError::Refused(database.message().to_owned())
        }
        (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_), _) => {
            StoreError::Unreadable(error.to_string())
        }
        _ => StoreError::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: sqlx::Error, expected: &str) {
        let found = store_error(error).to_string();
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn only_what_says_nothing_about_the_write_is_unavailable() {
        check(sqlx::Error::PoolTimedOut, "the database did not answer");
        check(sqlx::Error::WorkerCrashed, "the database did not answer");
        check(sqlx::Error::Decode("no such state".into()), "a stored row can not be read");
    }
}
