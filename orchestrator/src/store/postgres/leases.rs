//! Leases in PostgreSQL.
//!
//! A claim is one call of `lease_claim` (migration 0002), a transaction of its own: it takes the counter's row first, so claims queue and
//! the tokens of a key rise in the order of commits. `clock_timestamp()` decides what has expired. A hold lives as long as its session's
//! row; rows of dead sessions are deleted by claims, their holds a bounded number at a time by [`Leases::holds`] and on close.
//!
//! Across a crash of the server: sessions and holds are unlogged and gone, the counter stands. Across a promotion or a restore: the
//! timeline is another one, which `registration` makes a new epoch.
//!
//! Every call runs in a task of its own, bounded in time; a connection that did not answer is closed, never given back.
//! The server's wall clock set forward ends sessions early, set back late: both cost time, and the fences see to the rest.

mod calls;
mod generation;
mod registration;

use crate::lease::{Claim, ClaimOrder, Hold, LeaseError, Leases, Renewal, ResourceKey, SessionGrant, check_count};
use crate::store::StoreError;
use crate::store::postgres::PostgresOptions;
use async_trait::async_trait;
use calls::LeaseCalls;
use jobs::ids::{SessionId, Token};
use sqlx::postgres::PgPool;
use std::time::Duration;
use uuid::Uuid;

/// Holds of dead sessions deleted in one go.
const LEFTOVERS_MAX: i64 = 10_000;

const SESSION_RENEW: &str = "
    UPDATE lease_sessions SET expires_at = clock_timestamp() + ttl_ms * interval '1 millisecond'
     WHERE session_id = $1 AND expires_at > clock_timestamp() AND epoch = (SELECT max(epoch) FROM lease_epochs)";

const SESSION_DELETE: &str = "DELETE FROM lease_sessions WHERE session_id = $1";

const SESSIONS_LIVE: &str = "
    SELECT session_id FROM lease_sessions
     WHERE expires_at > clock_timestamp() AND epoch = (SELECT max(epoch) FROM lease_epochs) ORDER BY session_id";

const CLAIM: &str = "SELECT token_epoch, counter_before, counters FROM lease_claim($1, $2)";

/// Sorted keys, so that two releases, or a release and a claim, lock rows in one order.
const RELEASE: &str = "
    DELETE FROM lease_holds h USING unnest($2::text[], $3::bigint[]) AS r (resource_key, counter)
     WHERE h.resource_key = r.resource_key AND h.counter = r.counter AND h.session_id = $1";

const HOLDS: &str = "
    SELECT h.resource_key, s.epoch, h.counter FROM lease_holds h JOIN lease_sessions s USING (session_id)
     WHERE h.session_id = $1 AND s.expires_at > clock_timestamp() ORDER BY h.resource_key";

/// The counter is compared again on the row as it is when its lock is had: a hold that was just taken over stays.
const LEFTOVERS_DELETE: &str = "
    DELETE FROM lease_holds h USING (
        SELECT l.resource_key, l.counter FROM lease_holds l
         WHERE NOT EXISTS (SELECT FROM lease_sessions s WHERE s.session_id = l.session_id)
         LIMIT $1 FOR UPDATE OF l SKIP LOCKED) dead
     WHERE h.resource_key = dead.resource_key AND h.counter = dead.counter";

/// The lease service of one PostgreSQL database.
#[derive(Debug, Clone)]
pub struct PostgresLeases {
    calls: LeaseCalls,
}

impl PostgresLeases {
    /// Over a pool; `call_timeout` bounds each call, the wait for a connection included.
    #[must_use]
    pub const fn new(pool: PgPool, call_timeout: Duration) -> Self {
        Self { calls: LeaseCalls::new(pool, call_timeout) }
    }

    /// With a pool of its own, so that renewals do not queue behind bulk writes. A few connections are enough: claims queue anyway.
    pub async fn connect(options: PostgresOptions) -> Result<Self, StoreError> {
        // Each statement has one good plan, whatever the number of keys; making it anew costs more than a small claim.
        let pool = options.connect(&[("plan_cache_mode", "force_generic_plan")]).await?;
        Ok(Self::new(pool, options.call_timeout))
    }

    /// Ends all connections, after the calls that use them.
    pub async fn close(&self) {
        self.calls.close().await;
    }
}

#[async_trait]
impl Leases for PostgresLeases {
    fn backend(&self) -> &'static str {
        "sql"
    }

    async fn open_session(&self, session: SessionId, label: &str, ttl: Duration) -> Result<SessionGrant, LeaseError> {
        let label = label.to_owned();
        let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        let opened = self.calls.call("open session", move |connection| {
            Box::pin(async move { registration::open(connection, session, &label, ttl_ms).await })
        });
        if opened.await? { Ok(SessionGrant { session, ttl }) } else { Err(LeaseError::SessionLost(session)) }
    }

    async fn renew(&self, session: SessionId) -> Result<Renewal, LeaseError> {
        let renewed = self.calls.call("renew", move |connection| {
            Box::pin(async move {
                Ok(sqlx::query(SESSION_RENEW).bind(session.0).execute(connection).await?.rows_affected())
            })
        });
        Ok(if renewed.await? == 1 { Renewal::Renewed } else { Renewal::Lost })
    }

    async fn close_session(&self, session: SessionId) -> Result<(), LeaseError> {
        let close = self.calls.call("close session", move |connection| {
            Box::pin(async move {
                // Without the row its holds are free; deleting those is housekeeping.
                sqlx::query(SESSION_DELETE).bind(session.0).execute(&mut *connection).await?;
                sqlx::query(LEFTOVERS_DELETE).bind(LEFTOVERS_MAX).execute(connection).await?;
                Ok(())
            })
        });
        close.await
    }

    async fn claim(&self, session: SessionId, keys: &[ResourceKey]) -> Result<Vec<Claim>, LeaseError> {
        check_count(keys.len())?;
        let mut order = ClaimOrder::new(keys);
        let sorted = order.take_keys();
        let answer = self.calls.call("claim", move |connection| {
            Box::pin(async move { Ok(sqlx::query_as(CLAIM).bind(session.0).bind(sorted).fetch_one(connection).await?) })
        });
        let (epoch, before, counters): (Option<i64>, i64, Option<Vec<i64>>) = answer.await?;
        match (epoch, counters) {
            (Some(epoch), Some(counters)) => Ok(order.claims(epoch, before, &counters)),
            _ => Err(LeaseError::SessionLost(session)),
        }
    }

    async fn release(&self, session: SessionId, holds: &[Hold]) -> Result<(), LeaseError> {
        check_count(holds.len())?;
        let mut sorted: Vec<(String, i64)> =
            holds.iter().map(|hold| (hold.key.0.clone(), hold.token.counter)).collect();
        sorted.sort();
        let (keys, counters): (Vec<String>, Vec<i64>) = sorted.into_iter().unzip();
        let release = self.calls.call("release", move |connection| {
            Box::pin(async move {
                sqlx::query(RELEASE).bind(session.0).bind(keys).bind(counters).execute(connection).await?;
                Ok(())
            })
        });
        release.await
    }

    async fn holds(&self, session: SessionId) -> Result<Vec<Hold>, LeaseError> {
        let listed = self.calls.call("holds", move |connection| {
            Box::pin(async move {
                sqlx::query(LEFTOVERS_DELETE).bind(LEFTOVERS_MAX).execute(&mut *connection).await?;
                Ok(sqlx::query_as::<_, (String, i64, i64)>(HOLDS).bind(session.0).fetch_all(connection).await?)
            })
        });
        let hold = |(key, epoch, counter)| Hold { key: ResourceKey(key), token: Token { epoch, counter } };
        Ok(listed.await?.into_iter().map(hold).collect())
    }

    async fn live_sessions(&self) -> Result<Vec<SessionId>, LeaseError> {
        let live = self.calls.call("live sessions", |connection| {
            Box::pin(async move { Ok(sqlx::query_scalar::<_, Uuid>(SESSIONS_LIVE).fetch_all(connection).await?) })
        });
        Ok(live.await?.into_iter().map(SessionId).collect())
    }
}
