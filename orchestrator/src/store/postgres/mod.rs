//! [`Store`] on PostgreSQL.
//!
//! Every call is one statement or one transaction in a task of its own (`call`): a caller that goes away leaves nothing open. Writes
//! are bulk: arrays in, rows that lost filtered by WHERE. Lock order: intents by id, then payments by id, where order is that of the
//! sorted arrays; submit locks payments only and inserts. The triggers of the migration refuse what this code must never send.
//!
//! Across a crash: a transaction is there or not. A write whose answer was lost is [`StoreError::Unavailable`] and never repeated here.
//!
//! The session settings keep plans by key. Plans are cached for as long as a connection lives, also those made while a table was
//! empty; with scans, hash and merge joins switched off such a plan is still good when the table has grown. Bitmap scans are off
//! because they do not mark dead index entries, and what is due leaves many of those. Sums over everything scan all the same.
//!
//! Left out: choosing among several servers (the address does), and roles (see `migrate`).

mod apply;
mod audit_log;
mod backlog;
mod call;
mod due;
mod evidence;
mod failure;
mod find;
mod inbox;
pub mod leases;
mod list;
mod load;
mod pauses;
mod payments;
mod rows;
mod story;
mod submit;

use super::change::{Change, InboxResult, NewInboxRow, WriteResult};
use super::read::{AccountBalance, Backlog, IntentFilter, IntentPage, Payment, PspPause, Story};
use super::submit::{ImportResult, NewIntent, NewPayment, SubmitResult};
use super::{BATCH_MAX, DueQuery, Loaded, Store, StoreError, check_count};
use async_trait::async_trait;
use call::Calls;
use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use std::str::FromStr;
use std::time::Duration;

/// Where the server is and how long it may take.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub url: SecretString,
    pub max_connections: u32,
    /// The server ends a statement after this long.
    pub statement_timeout: Duration,
    /// The server gives up waiting for a row after this long.
    pub lock_timeout: Duration,
    /// A call ends after this long, whatever the server does; longer than the other two.
    pub call_timeout: Duration,
}

impl PostgresOptions {
    /// Timeouts that fit a worker: far below a hold's maximum, far above any statement here.
    #[must_use]
    pub fn new(url: SecretString) -> Self {
        Self {
            url,
            max_connections: 16,
            statement_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(8),
        }
    }

    /// A pool whose connections are tested by their users, with server settings of its own.
    async fn connect(&self, settings: &[(&str, &str)]) -> Result<PgPool, StoreError> {
        PgPoolOptions::new()
            .max_connections(self.max_connections)
            .acquire_timeout(self.call_timeout)
            .test_before_acquire(false)
            .connect_with(self.connect_options()?.options(settings.iter().copied()))
            .await
            .map_err(failure::to_store_error)
    }

    fn connect_options(&self) -> Result<PgConnectOptions, StoreError> {
        let milliseconds = |duration: Duration| duration.as_millis().to_string();
        let options = PgConnectOptions::from_str(self.url.expose_secret())
            .map_err(|_| StoreError::Unavailable("the database address can not be read".to_owned()))?;
        Ok(options.application_name("orchestrator").options([
            ("statement_timeout", milliseconds(self.statement_timeout)),
            ("lock_timeout", milliseconds(self.lock_timeout)),
            ("idle_in_transaction_session_timeout", milliseconds(self.call_timeout)),
            ("jit", "off".to_owned()),
            ("enable_seqscan", "off".to_owned()),
            ("enable_bitmapscan", "off".to_owned()),
            ("enable_hashjoin", "off".to_owned()),
            ("enable_mergejoin", "off".to_owned()),
            ("enable_material", "off".to_owned()),
        ]))
    }
}

/// The store on one PostgreSQL database; cheap to clone, clones share the pool.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    calls: Calls,
}

impl PostgresStore {
    /// Opens the pool and one connection, so that a wrong address shows at once.
    pub async fn connect(options: PostgresOptions) -> Result<Self, StoreError> {
        let pool = options.connect(&[]).await?;
        Ok(Self { calls: Calls::new(pool, options.call_timeout, options.max_connections) })
    }

    /// Ends all connections, after the calls that use them.
    pub async fn close(&self) {
        self.calls.pool().close().await;
    }
}

/// A limit, already checked, as SQL takes it.
fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit.min(BATCH_MAX)).unwrap_or(i64::MAX)
}

#[async_trait]
impl Store for PostgresStore {
    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        load::now(&self.calls).await
    }

    async fn import_payments(&self, payments: &[NewPayment]) -> Result<Vec<ImportResult>, StoreError> {
        check_count("payments", payments.len())?;
        payments::import(&self.calls, payments).await
    }

    async fn submit(&self, intents: &[NewIntent]) -> Result<Vec<SubmitResult>, StoreError> {
        check_count("intents", intents.len())?;
        submit::submit(&self.calls, intents).await
    }

    async fn due(&self, query: &DueQuery) -> Result<Vec<IntentId>, StoreError> {
        check_count("due intents", query.limit)?;
        due::due(&self.calls, query).await
    }

    async fn load(&self, ids: &[IntentId]) -> Result<Loaded, StoreError> {
        check_count("intents", ids.len())?;
        load::load(&self.calls, ids).await
    }

    async fn apply(&self, changes: &[Change]) -> Result<Vec<WriteResult>, StoreError> {
        check_count("changes", changes.len())?;
        apply::apply(&self.calls, changes).await
    }

    async fn unread_among(&self, ids: &[IntentId]) -> Result<Vec<IntentId>, StoreError> {
        check_count("intents", ids.len())?;
        due::unread_among(&self.calls, ids).await
    }

    async fn append_inbox(&self, rows: &[NewInboxRow]) -> Result<Vec<InboxResult>, StoreError> {
        check_count("messages", rows.len())?;
        inbox::append(&self.calls, rows).await
    }

    async fn pause_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<(), StoreError> {
        pauses::pause(&self.calls, psp, actor, reason).await
    }

    async fn resume_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<bool, StoreError> {
        pauses::resume(&self.calls, psp, actor, reason).await
    }

    async fn psp_pauses(&self) -> Result<Vec<PspPause>, StoreError> {
        pauses::list(&self.calls).await
    }

    async fn payment(&self, id: &PaymentId) -> Result<Option<Payment>, StoreError> {
        payments::payment(&self.calls, id).await
    }

    async fn find(&self, any_id: &str, limit: usize) -> Result<Vec<IntentId>, StoreError> {
        check_count("found intents", limit)?;
        find::find(&self.calls, any_id, limit).await
    }

    async fn story(&self, id: &IntentId) -> Result<Option<Story>, StoreError> {
        story::story(&self.calls, id).await
    }

    async fn list(&self, filter: &IntentFilter, cursor: Option<&str>, limit: usize) -> Result<IntentPage, StoreError> {
        check_count("rows of a page", limit)?;
        list::list(&self.calls, filter, cursor, limit).await
    }

    async fn balances(&self) -> Result<Vec<AccountBalance>, StoreError> {
        backlog::balances(&self.calls).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        backlog::backlog(&self.calls).await
    }
}
