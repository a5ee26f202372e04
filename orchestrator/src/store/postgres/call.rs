//! How a call reaches the server: a connection, a time limit, a task of its own.
//!
//! States of a call: waiting for a connection; begun; done; failed. The task goes on when its caller is dropped, so BEGIN is always
//! followed by COMMIT, ROLLBACK or the end of the connection. A connection goes back to the pool only after the server said that
//! it is idle; in all other cases its socket is closed.
//!
//! Connections are not tested before use. One that turns out broken before the first statement of a transaction took effect (BEGIN),
//! or in a read, is replaced; a write that was begun is never sent again, unless it is known to be undone.

use super::failure::{Aftermath, Failure};
use crate::store::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection, Executor, Postgres};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What a call does with its connection. It may be run again, so it owns what it needs behind an `Arc`.
pub(super) type Body<'c, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'c>>;

/// Times a transaction is run when it is undone to let others go on: more in a row mean that something else is wrong.
const RUNS_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Reads, each statement for itself.
    Read,
    /// Reads that must fit together.
    Snapshot,
    Write,
}

impl Kind {
    const fn begin(self) -> Option<&'static str> {
        match self {
            Self::Read => None,
            Self::Snapshot => Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            Self::Write => Some("BEGIN"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Calls {
    pool: PgPool,
    call_timeout: Duration,
    max_connections: u32,
}

impl Calls {
    pub(super) const fn new(pool: PgPool, call_timeout: Duration, max_connections: u32) -> Self {
        Self { pool, call_timeout, max_connections }
    }

    pub(super) const fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(super) async fn read<T, F>(&self, what: &'static str, body: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection) -> Body<'c, T> + Send + Sync + 'static,
    {
        self.call(what, Kind::Read, body).await
    }

    pub(super) async fn snapshot<T, F>(&self, what: &'static str, body: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection) -> Body<'c, T> + Send + Sync + 'static,
    {
        self.call(what, Kind::Snapshot, body).await
    }

    pub(super) async fn write<T, F>(&self, what: &'static str, body: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection) -> Body<'c, T> + Send + Sync + 'static,
    {
        self.call(what, Kind::Write, body).await
    }

    async fn call<T, F>(&self, what: &'static str, kind: Kind, body: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection) -> Body<'c, T> + Send + Sync + 'static,
    {
        let calls = self.clone();
        let task = tokio::spawn(async move {
            match tokio::time::timeout(calls.call_timeout, calls.run(kind, &body)).await {
                Ok(result) => result,
                Err(_) => Err(StoreError::Unavailable(format!("{what}: no answer within {:?}", calls.call_timeout))),
            }
        });
        task.await.unwrap_or_else(|error| Err(StoreError::Unavailable(format!("{what}: {error}"))))
    }

    async fn run<T, F>(&self, kind: Kind, body: &F) -> Result<T, StoreError>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> Body<'c, T> + Send + Sync,
    {
        let mut run = 1;
        loop {
            let mut held = self.begin(kind, run > 1).await?;
            let result = match body(held.connection()?).await {
                Ok(value) if kind == Kind::Read => Ok(value),
                Ok(value) => held.connection()?.execute("COMMIT").await.map(|_| value).map_err(Failure::Sql),
                Err(failure) => Err(failure),
            };
            let failure = match result {
                Ok(value) => {
                    held.release();
                    return Ok(value);
                }
                Err(failure) => failure,
            };
            let aftermath = failure.aftermath();
            if aftermath != Aftermath::Broken {
                held.give_back(kind).await;
            }
            let again = match aftermath {
                Aftermath::Undone => run < RUNS_MAX,
                Aftermath::Broken => kind != Kind::Write && run == 1,
                Aftermath::Usable => false,
            };
            if !again {
                return Err(failure.into_store_error());
            }
            run += 1;
        }
    }

    /// A connection with the transaction begun. One that is broken before that is replaced: nothing was sent on it.
    async fn begin(&self, kind: Kind, test: bool) -> Result<Held, StoreError> {
        let mut tries = 0;
        loop {
            let mut held = Held(Some(self.pool.acquire().await.map_err(super::failure::to_store_error)?));
            let connection = held.connection()?;
            let begun = match kind.begin() {
                Some(begin) => connection.execute(begin).await.map(drop),
                None if test => connection.ping().await,
                None => Ok(()),
            };
            match begun.map_err(Failure::Sql) {
                Ok(()) => return Ok(held),
                // The whole pool may be broken after a restart of the server.
                Err(failure) if failure.aftermath() == Aftermath::Broken && tries < self.max_connections => tries += 1,
                Err(failure) => return Err(failure.into_store_error()),
            }
        }
    }
}

/// A connection in use. Dropped, its socket is closed; only an idle one is given back.
struct Held(Option<PoolConnection<Postgres>>);

impl Held {
    fn connection(&mut self) -> Result<&mut PgConnection, StoreError> {
        match &mut self.0 {
            Some(connection) => Ok(&mut *connection),
            None => Err(StoreError::Unavailable("the connection was given back".to_owned())),
        }
    }

    fn release(mut self) {
        drop(self.0.take());
    }

    async fn give_back(mut self, kind: Kind) {
        let Ok(connection) = self.connection() else { return };
        if kind == Kind::Read || connection.execute("ROLLBACK").await.is_ok() {
            self.release();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
