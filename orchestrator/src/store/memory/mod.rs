//! A store in memory: the executable specification of [`Store`], and what simulation runs on.
//!
//! One mutex guards one value, so a call is one whole transaction by construction: it judges everything first, then either
//! writes all of it or nothing. Maps are ordered, so the same calls at the same times give the same rows. Every write of an
//! intent passes `fences`, which says the same as the triggers and constraints of the database; [`MemoryStore::write_as_anyone`]
//! goes there directly, past the filters of [`Store::apply`], as a program without manners or a person at a SQL prompt would.
//!
//! It outlives a simulated crash of a replica because the value is shared, and nothing else survives: there is no file. Times are kept
//! to the microsecond, as the databases do. Left out: connections, and with them every [`StoreError::Unavailable`].

mod apply;
mod epochs;
mod fences;
mod inbox;
mod looking;
mod paging;
mod pauses;
mod submitting;
mod tables;
mod work;

pub use epochs::{Epoch, NewEpoch};
pub use pauses::AuditRow;
pub use tables::IntentRow;

use super::change::{Change, InboxResult, NewInboxRow, WriteResult};
use super::read::{AccountBalance, Backlog, IntentFilter, IntentPage, Payment, PspPause, Story};
use super::submit::{ImportResult, NewIntent, NewPayment, SubmitResult};
use super::{DueQuery, Loaded, Store, StoreError, check_count};
use crate::clock::Clock;
use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};
use jobs::ids::{IntentId, PaymentId};
use pauses::Asked;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tables::Tables;

/// The timeline of a database that is never restored.
const TIMELINE: i64 = 1;

/// See the module.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    tables: Mutex<Tables>,
}

impl MemoryStore {
    /// An empty database whose epoch 1 belongs to the memory lease service.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let store = Self { clock, tables: Mutex::new(Tables::default()) };
        let first = NewEpoch { backend: "memory", generation: "memory", highest_revision: 0, registered_by: "start" };
        store.register_epoch(&first);
        store
    }

    /// Makes a new generation of a lease service the current one; tokens of all earlier ones are stale from now on.
    pub fn register_epoch(&self, new: &NewEpoch<'_>) -> i64 {
        let now = self.database_time();
        self.lock().register_epoch(new, now)
    }

    /// The epoch that installs and commits must carry.
    #[must_use]
    pub fn current_epoch(&self) -> i64 {
        self.lock().current_epoch()
    }

    /// The register, oldest first.
    #[must_use]
    pub fn epochs(&self) -> Vec<Epoch> {
        self.lock().epochs.clone()
    }

    /// The current generation's highest revision seen. A mark below the stored one changes nothing.
    pub fn raise_revision_mark(&self, revision: i64) {
        self.lock().raise_revision_mark(revision);
    }

    /// What people and configuration did, oldest first.
    #[must_use]
    pub fn audit(&self) -> Vec<AuditRow> {
        self.lock().audit.clone()
    }

    /// The row with its stamp, as a person at a SQL prompt sees it.
    #[must_use]
    pub fn row(&self, id: &IntentId) -> Option<IntentRow> {
        self.lock().intents.get(id).map(|file| file.row.clone())
    }

    /// Replaces an intent's row past the filters of [`Store::apply`]; the fences alone decide.
    pub fn write_as_anyone(&self, row: IntentRow) -> Result<(), StoreError> {
        let mut tables = self.lock();
        let Some(file) = tables.intents.get_mut(&row.intent.intent_id) else {
            return Err(StoreError::Refused("refund_intents: no such row".to_owned()));
        };
        fences::check_update(&file.row, &row)?;
        file.row = row;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        // Every transaction judges before it writes, so a panic elsewhere leaves whole rows behind.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn database_time(&self) -> DateTime<Utc> {
        kept(self.clock.wall())
    }
}

/// A time as a column keeps it.
fn kept(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(6)
}

#[async_trait]
impl Store for MemoryStore {
    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        Ok(self.database_time())
    }

    async fn import_payments(&self, payments: &[NewPayment]) -> Result<Vec<ImportResult>, StoreError> {
        check_count("payments", payments.len())?;
        let now = self.database_time();
        self.lock().import_payments(payments, now)
    }

    async fn submit(&self, intents: &[NewIntent]) -> Result<Vec<SubmitResult>, StoreError> {
        check_count("intents", intents.len())?;
        let now = self.database_time();
        self.lock().submit(intents, now)
    }

    async fn due(&self, query: &DueQuery) -> Result<Vec<IntentId>, StoreError> {
        check_count("limit", query.limit)?;
        Ok(self.lock().due(query, self.database_time()))
    }

    async fn load(&self, ids: &[IntentId]) -> Result<Loaded, StoreError> {
        check_count("ids", ids.len())?;
        let files = self.lock().load(ids);
        Ok(Loaded { now: self.database_time(), timeline: TIMELINE, files })
    }

    async fn apply(&self, changes: &[Change]) -> Result<Vec<WriteResult>, StoreError> {
        check_count("changes", changes.len())?;
        let now = self.database_time();
        self.lock().apply(changes, now)
    }

    async fn unread_among(&self, ids: &[IntentId]) -> Result<Vec<IntentId>, StoreError> {
        check_count("ids", ids.len())?;
        let files = self.lock().load(ids);
        Ok(files.into_iter().filter(|file| !file.unread.is_empty()).map(|file| file.intent.intent_id).collect())
    }

    async fn append_inbox(&self, rows: &[NewInboxRow]) -> Result<Vec<InboxResult>, StoreError> {
        check_count("inbox rows", rows.len())?;
        let now = self.database_time();
        Ok(self.lock().append_inbox(rows, now))
    }

    async fn pause_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<(), StoreError> {
        let now = self.database_time();
        self.lock().pause_psp(Asked { psp, actor, reason, now });
        Ok(())
    }

    async fn resume_psp(&self, psp: &str, actor: &str, reason: &str) -> Result<bool, StoreError> {
        let now = self.database_time();
        Ok(self.lock().resume_psp(Asked { psp, actor, reason, now }))
    }

    async fn psp_pauses(&self) -> Result<Vec<PspPause>, StoreError> {
        Ok(self.lock().pauses.values().cloned().collect())
    }

    async fn payment(&self, id: &PaymentId) -> Result<Option<Payment>, StoreError> {
        Ok(self.lock().payments.get(id).cloned())
    }

    async fn find(&self, any_id: &str, limit: usize) -> Result<Vec<IntentId>, StoreError> {
        check_count("limit", limit)?;
        Ok(self.lock().find(any_id, limit))
    }

    async fn story(&self, id: &IntentId) -> Result<Option<Story>, StoreError> {
        Ok(self.lock().story(id, self.database_time()))
    }

    async fn list(&self, filter: &IntentFilter, cursor: Option<&str>, limit: usize) -> Result<IntentPage, StoreError> {
        check_count("limit", limit)?;
        self.lock().list(filter, cursor, limit)
    }

    async fn balances(&self) -> Result<Vec<AccountBalance>, StoreError> {
        Ok(self.lock().balances())
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        Ok(self.lock().backlog())
    }
}
