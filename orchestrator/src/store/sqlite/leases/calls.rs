//! How a lease call reaches the file: the writer connection, `BEGIN IMMEDIATE`, the time as it is then, a task of its own.

use crate::clock::Clock;
use crate::lease::LeaseError;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The steps of one transaction, boxed because they borrow its connection.
pub(super) type Steps<'c, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'c>>;

/// Why a call stopped.
#[derive(Debug)]
pub(super) enum Failure {
    Sql(sqlx::Error),
    Lease(LeaseError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<LeaseError> for Failure {
    fn from(error: LeaseError) -> Self {
        Self::Lease(error)
    }
}

#[derive(Debug, Clone)]
pub(super) struct LeaseCalls {
    writer: SqlitePool,
    clock: Arc<dyn Clock>,
    boot_id: Arc<str>,
    call_timeout: Duration,
}

/// What a transaction knows about the time.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    pub(super) boottime_ns: i64,
    pub(super) boot_id: Arc<str>,
}

impl LeaseCalls {
    pub(super) fn new(writer: SqlitePool, clock: Arc<dyn Clock>, boot_id: &str, call_timeout: Duration) -> Self {
        Self { writer, clock, boot_id: Arc::from(boot_id), call_timeout }
    }

    pub(super) async fn call<T, F>(&self, what: &'static str, steps: F) -> Result<T, LeaseError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection, Moment) -> Steps<'c, T> + Send + 'static,
    {
        let (calls, limit) = (self.clone(), self.call_timeout);
        let task = tokio::spawn(async move { calls.transact(steps).await });
        match tokio::time::timeout(limit, task).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(Failure::Lease(error)))) => Err(error),
            Ok(Ok(Err(Failure::Sql(error)))) => Err(LeaseError::Unavailable(format!("{what}: {error}"))),
            Ok(Err(error)) => Err(LeaseError::Unavailable(format!("{what}: {error}"))),
            Err(_) => Err(LeaseError::Unavailable(format!("{what}: silent for {limit:?}"))),
        }
    }

    async fn transact<T, F>(&self, steps: F) -> Result<T, Failure>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection, Moment) -> Steps<'c, T> + Send,
    {
        let mut connection = self.writer.acquire().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let moment = Moment { boottime_ns: nanoseconds(self.clock.boottime().0), boot_id: Arc::clone(&self.boot_id) };
        let value = steps(&mut transaction, moment).await?;
        transaction.commit().await?;
        Ok(value)
    }
}

pub(super) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
