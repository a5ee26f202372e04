//! Leases in a SQLite file, for the processes of one host.
//!
//! Every call that changes something is one `BEGIN IMMEDIATE` transaction on the writer connection, so claims queue and tokens rise in the
//! order of commits. Expiry is judged on CLOCK_BOOTTIME, read inside the transaction, after the wait for the file; a session of another boot
//! is dead. Dead sessions' rows are deleted before each claim looks, their holds a bounded number at a time.
//!
//! Across a crash of the process: rows are there or not, the session ends after its TTL. The epoch stays 1: the generation is a random
//! identity stored when the register is empty, and travels with the file. Left out: a copied file is the same generation.
//!
//! A call whose caller went away or gave up waiting runs to its end in its own task: the one writer connection is never cut off.

mod calls;
mod steps;

use crate::clock::Clock;
use crate::lease::{Claim, ClaimOrder, Hold, LeaseError, Leases, Renewal, ResourceKey, SessionGrant, check_count};
use crate::store::sqlite::SqliteStore;
use async_trait::async_trait;
use calls::{LeaseCalls, nanoseconds};
use jobs::ids::{SessionId, Token};
use sqlx::sqlite::SqlitePool;
use sqlx::{query, query_as, query_scalar};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const SESSION_ADD: &str = "
    INSERT INTO lease_sessions (session_id, label, epoch, ttl_ns, boot_id, expires_boottime_ns)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (session_id) DO NOTHING";

const SESSION_RENEW: &str = "UPDATE lease_sessions SET expires_boottime_ns = ?2 + ttl_ns WHERE session_id = ?1";

const SESSION_DELETE: &str = "DELETE FROM lease_sessions WHERE session_id = ?1";

const SESSIONS_LIVE: &str = "
    SELECT session_id FROM lease_sessions
     WHERE boot_id = ?1 AND expires_boottime_ns > ?2 AND epoch = (SELECT max(epoch) FROM lease_epochs) ORDER BY session_id";

const RELEASE: &str = "
    DELETE FROM lease_holds WHERE session_id = ?1 AND (resource_key, counter) IN
        (SELECT r.value ->> 0, r.value ->> 1 FROM json_each(?2) r)";

const HOLDS: &str = "
    SELECT h.resource_key, s.epoch, h.counter FROM lease_holds h JOIN lease_sessions s USING (session_id)
     WHERE h.session_id = ?1 ORDER BY h.resource_key";

/// What a lease file needs to know about its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// A random identity for this file, used if it has none yet.
    pub generation: Uuid,
}

impl Host {
    /// This machine, as it runs now.
    pub fn here(generation: Uuid) -> std::io::Result<Self> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Self { boot_id, generation })
    }
}

/// The lease service of one file.
#[derive(Debug, Clone)]
pub struct SqliteLeases {
    calls: LeaseCalls,
    generation: Uuid,
}

impl SqliteLeases {
    /// Over the pool with the file's one writer connection; `call_timeout` bounds the wait for each call.
    #[must_use]
    pub fn new(writer: SqlitePool, clock: Arc<dyn Clock>, host: &Host, call_timeout: Duration) -> Self {
        let calls = LeaseCalls::new(writer, clock, &host.boot_id, call_timeout);
        Self { calls, generation: host.generation }
    }

    /// In the file of a store that is open.
    #[must_use]
    pub fn of_store(store: &SqliteStore, clock: Arc<dyn Clock>, host: &Host, call_timeout: Duration) -> Self {
        Self::new(store.connections().writer().clone(), clock, host, call_timeout)
    }
}

#[async_trait]
impl Leases for SqliteLeases {
    fn backend(&self) -> &'static str {
        "sql"
    }

    async fn open_session(&self, session: SessionId, label: &str, ttl: Duration) -> Result<SessionGrant, LeaseError> {
        let (label, generation) = (label.to_owned(), self.generation);
        let opened = self.calls.call("open session", move |connection, moment| {
            Box::pin(async move {
                let epoch = steps::register(connection, generation, &label).await?;
                steps::end_dead_sessions(connection, &moment).await?;
                let ttl_ns = nanoseconds(ttl);
                let added = query(SESSION_ADD)
                    .bind(session.0.to_string())
                    .bind(&label)
                    .bind(epoch)
                    .bind(ttl_ns)
                    .bind(&*moment.boot_id)
                    .bind(moment.boottime_ns.saturating_add(ttl_ns))
                    .execute(connection)
                    .await?;
                Ok(added.rows_affected() == 1)
            })
        });
        if opened.await? { Ok(SessionGrant { session, ttl }) } else { Err(LeaseError::SessionLost(session)) }
    }

    async fn renew(&self, session: SessionId) -> Result<Renewal, LeaseError> {
        let renewed = self.calls.call("renew", move |connection, moment| {
            Box::pin(async move {
                steps::end_dead_sessions(connection, &moment).await?;
                let renew = query(SESSION_RENEW).bind(session.0.to_string()).bind(moment.boottime_ns);
                Ok(renew.execute(connection).await?.rows_affected())
            })
        });
        Ok(if renewed.await? == 1 { Renewal::Renewed } else { Renewal::Lost })
    }

    async fn close_session(&self, session: SessionId) -> Result<(), LeaseError> {
        let close = self.calls.call("close session", move |connection, _| {
            Box::pin(async move {
                query(SESSION_DELETE).bind(session.0.to_string()).execute(&mut *connection).await?;
                steps::delete_leftovers(connection).await
            })
        });
        close.await
    }

    async fn claim(&self, session: SessionId, keys: &[ResourceKey]) -> Result<Vec<Claim>, LeaseError> {
        check_count(keys.len())?;
        let mut order = ClaimOrder::new(keys);
        let sorted = order.take_keys();
        let answer = self.calls.call("claim", move |connection, moment| {
            Box::pin(async move { steps::claim(connection, &moment, session, sorted).await })
        });
        let (epoch, before, counters) = answer.await?;
        Ok(order.claims(epoch, before, &counters))
    }

    async fn release(&self, session: SessionId, holds: &[Hold]) -> Result<(), LeaseError> {
        check_count(holds.len())?;
        let pairs: Vec<(&str, i64)> = holds.iter().map(|hold| (hold.key.0.as_str(), hold.token.counter)).collect();
        let pairs = serde_json::json!(pairs).to_string();
        let release = self.calls.call("release", move |connection, _| {
            Box::pin(async move {
                query(RELEASE).bind(session.0.to_string()).bind(pairs).execute(connection).await?;
                Ok(())
            })
        });
        release.await
    }

    async fn holds(&self, session: SessionId) -> Result<Vec<Hold>, LeaseError> {
        let listed = self.calls.call("holds", move |connection, moment| {
            Box::pin(async move {
                steps::end_dead_sessions(connection, &moment).await?;
                steps::delete_leftovers(connection).await?;
                let rows = query_as::<_, (String, i64, i64)>(HOLDS).bind(session.0.to_string()).fetch_all(connection);
                Ok(rows.await?)
            })
        });
        let hold = |(key, epoch, counter)| Hold { key: ResourceKey(key), token: Token { epoch, counter } };
        Ok(listed.await?.into_iter().map(hold).collect())
    }

    async fn live_sessions(&self) -> Result<Vec<SessionId>, LeaseError> {
        let live = self.calls.call("live sessions", |connection, moment| {
            Box::pin(async move {
                let rows = query_scalar::<_, String>(SESSIONS_LIVE).bind(&*moment.boot_id).bind(moment.boottime_ns);
                Ok(rows.fetch_all(connection).await?)
            })
        });
        // Only this code writes the column; what does not read as an identity is nobody's session.
        Ok(live.await?.iter().filter_map(|text| Uuid::parse_str(text).ok()).map(SessionId).collect())
    }
}
