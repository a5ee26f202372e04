//! [`Store`] on SQLite: one file on one host, for development, small sites and tests.
//!
//! A call is one transaction in a task of its own (`connect`). Writes queue for the one writer connection, which holds the file's
//! write lock from its first statement on; so a write may read, decide in memory and then write what it decided (`judge`, `submit`),
//! and nothing moves in between. Reads are snapshots. The triggers of the migration refuse what this code must never send, whoever
//! sends it.
//!
//! Across a crash: a transaction is there or not. A write whose answer was lost is [`StoreError::Unavailable`] and never repeated here.
//!
//! Left out: several hosts, standbys, roles. There is one timeline, always 1. The database's clock is the host's, in milliseconds.

mod apply;
mod connect;
mod evidence;
mod inbox;
mod judge;
pub mod leases;
mod listing;
mod looking;
mod migrate;
mod pauses;
mod payments;
mod place;
mod rows;
mod statement;
mod submit;
mod work;

pub use place::SqlitePlace;

use super::change::{Change, InboxResult, NewInboxRow, WriteResult};
use super::read::{AccountBalance, Backlog, IntentFilter, IntentPage, Payment, PspPause, Story};
use super::submit::{ImportResult, NewIntent, NewPayment, SubmitResult};
use super::{DueQuery, Loaded, Store, StoreError, check_count};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use connect::Connections;
use jobs::ids::{IntentId, PaymentId};
use place::Place;
use std::path::Path;

/// Which file, and nothing else: everything that could be set has one right value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    pub place: SqlitePlace,
}

/// See the module.
#[derive(Debug)]
pub struct SqliteStore {
    // Dropped before the place, so that a temporary folder goes after its connections were told to end.
    connections: Connections,
    place: Place,
}

impl SqliteStore {
    /// Opens the file and brings its schema up to date. Several processes may do so at once.
    pub async fn open(options: SqliteOptions) -> Result<Self, StoreError> {
        let place = Place::open(options.place)?;
        let connections = Connections::open(place.file()).await?;
        migrate::run(&connections).await?;
        Ok(Self { connections, place })
    }

    /// The file, for people with the `sqlite3` program.
    #[must_use]
    pub fn file(&self) -> &Path {
        self.place.file()
    }

    /// Ends all connections after the transactions under way; what is committed is in the file then, and the log beside it gone.
    pub async fn close(&self) {
        self.connections.close().await;
    }

    /// For the other parts of the store that live in the same file.
    pub(in crate::store) const fn connections(&self) -> &Connections {
        &self.connections
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        let micros = self.connections.read(|connection| Box::pin(statement::now_micros(connection))).await?;
        rows::time("now", micros)
    }

    async fn import_payments(&self, payments: &[NewPayment]) -> Result<Vec<ImportResult>, StoreError> {
        check_count("payments", payments.len())?;
        let given = payments.to_vec();
        self.connections.write(|connection| Box::pin(payments::import_payments(connection, given))).await
    }

    async fn submit(&self, intents: &[NewIntent]) -> Result<Vec<SubmitResult>, StoreError> {
        check_count("intents", intents.len())?;
        let given = intents.to_vec();
        self.connections.write(|connection| Box::pin(submit::submit(connection, given))).await
    }

    async fn due(&self, query: &DueQuery) -> Result<Vec<IntentId>, StoreError> {
        check_count("limit", query.limit)?;
        let query = query.clone();
        self.connections.read(|connection| Box::pin(work::due(connection, query))).await
    }

    async fn load(&self, ids: &[IntentId]) -> Result<Loaded, StoreError> {
        check_count("ids", ids.len())?;
        let ids = ids.to_vec();
        self.connections.read(|connection| Box::pin(work::load(connection, ids))).await
    }

    async fn apply(&self, changes: &[Change]) -> Result<Vec<WriteResult>, StoreError> {
        check_count("changes", changes.len())?;
        let changes = changes.to_vec();
        self.connections.write(|connection| Box::pin(apply::apply(connection, changes))).await
    }

    async fn unread_among(&self, ids: &[IntentId]) -> Result<Vec<IntentId>, StoreError> {
        check_count("ids", ids.len())?;
        let ids = ids.to_vec();
        self.connections.read(|connection| Box::pin(work::unread_among(connection, ids))).await
    }

    async fn append_inbox(&self, rows: &[NewInboxRow]) -> Result<Vec<InboxResult>, StoreError> {
        check_count("inbox rows", rows.len())?;
        let given = rows.to_vec();
        self.connections.write(|connection| Box::pin(inbox::append(connection, given))).await
    }

    async fn pause_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<(), StoreError> {
        let deed = pauses::Deed::new(psp, actor, reason);
        self.connections.write(|connection| Box::pin(pauses::pause(connection, deed))).await
    }

    async fn resume_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<bool, StoreError> {
        let deed = pauses::Deed::new(psp, actor, reason);
        self.connections.write(|connection| Box::pin(pauses::resume(connection, deed))).await
    }

    async fn psp_pauses(&self) -> Result<Vec<PspPause>, StoreError> {
        self.connections.read(|connection| Box::pin(looking::pauses(connection, None))).await
    }

    async fn payment(&self, id: &PaymentId) -> Result<Option<Payment>, StoreError> {
        let id = id.clone();
        self.connections.read(|connection| Box::pin(looking::payment(connection, id))).await
    }

    async fn find(&self, any_id: &str, limit: usize) -> Result<Vec<IntentId>, StoreError> {
        check_count("limit", limit)?;
        let any_id = any_id.to_owned();
        self.connections.read(move |connection| Box::pin(looking::find(connection, any_id, limit))).await
    }

    async fn story(&self, id: &IntentId) -> Result<Option<Story>, StoreError> {
        let id = id.clone();
        self.connections.read(|connection| Box::pin(looking::story(connection, id))).await
    }

    async fn list(&self, filter: &IntentFilter, cursor: Option<&str>, limit: usize) -> Result<IntentPage, StoreError> {
        check_count("limit", limit)?;
        let (filter, cursor) = (filter.clone(), cursor.map(str::to_owned));
        self.connections.read(move |connection| Box::pin(listing::list(connection, filter, cursor, limit))).await
    }

    async fn balances(&self) -> Result<Vec<AccountBalance>, StoreError> {
        self.connections.read(|connection| Box::pin(listing::balances(connection))).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.connections.read(|connection| Box::pin(listing::backlog(connection))).await
    }
}
