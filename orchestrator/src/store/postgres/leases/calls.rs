//! How a lease call reaches PostgreSQL: a connection that answers, a time limit, a task of its own.
//!
//! The task goes on when its caller is dropped, so nothing is left half sent. A connection whose call failed or was cut off is
//! closed; an open transaction on it ends with it. Connections are tested before use: lease calls are bulk or rare, and after
//! a restart of the server the first of them must not cost the session.

use crate::lease::LeaseError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection, Postgres};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What a call does with its connection.
pub(super) type Body<'c, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'c>>;

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
    pool: PgPool,
    call_timeout: Duration,
}

impl LeaseCalls {
    pub(super) const fn new(pool: PgPool, call_timeout: Duration) -> Self {
        Self { pool, call_timeout }
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    pub(super) async fn call<T, F>(&self, what: &'static str, body: F) -> Result<T, LeaseError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut PgConnection) -> Body<'c, T> + Send + 'static,
    {
        let (pool, limit) = (self.pool.clone(), self.call_timeout);
        let task = tokio::spawn(async move { tokio::time::timeout(limit, run(pool, body)).await });
        match task.await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(Failure::Lease(error)))) => Err(error),
            Ok(Ok(Err(Failure::Sql(error)))) => Err(LeaseError::Unavailable(format!("{what}: {error}"))),
            Ok(Err(_)) => Err(LeaseError::Unavailable(format!("{what}: silent for {limit:?}"))),
            Err(error) => Err(LeaseError::Unavailable(format!("{what}: {error}"))),
        }
    }
}

async fn run<T, F>(pool: PgPool, body: F) -> Result<T, Failure>
where
    F: for<'c> FnOnce(&'c mut PgConnection) -> Body<'c, T> + Send + 'static,
{
    let mut lent = Lent::acquire(&pool).await?;
    let value = body(lent.connection()?).await?;
    lent.give_back();
    Ok(value)
}

/// A connection in use. Dropped, its socket is closed; only one whose call went well is given back.
struct Lent(Option<PoolConnection<Postgres>>);

impl Lent {
    async fn acquire(pool: &PgPool) -> Result<Self, sqlx::Error> {
        let mut broken = 0;
        loop {
            let mut lent = Self(Some(pool.acquire().await?));
            match lent.connection()?.ping().await {
                Ok(()) => return Ok(lent),
                // The whole pool may be broken after a restart of the server.
                Err(_) if broken < pool.options().get_max_connections() => broken += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.0.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
