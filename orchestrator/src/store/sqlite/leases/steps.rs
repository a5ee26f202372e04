//! Steps that lease transactions on SQLite have in common.

use super::calls::{Failure, Moment};
use crate::lease::LeaseError;
use crate::lease::register::{Found, Registered, Registration, judge};
use jobs::ids::SessionId;
use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

const EPOCH_CURRENT: &str = "SELECT epoch, backend, generation FROM lease_epochs ORDER BY epoch DESC LIMIT 1";

const FENCE_EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM refund_intents WHERE fence_epoch > 0)";

const EPOCH_ADD: &str =
    "INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (?1, 'sql', ?2, ?3)";

const SESSIONS_DEAD_DELETE: &str = "
    DELETE FROM lease_sessions
     WHERE boot_id <> ?1 OR expires_boottime_ns <= ?2 OR epoch <> (SELECT max(epoch) FROM lease_epochs)";

const SESSION_EPOCH: &str = "SELECT epoch FROM lease_sessions WHERE session_id = ?1";

const COUNTER_RAISE: &str = "UPDATE lease_counter SET counter = counter + ?1 RETURNING counter - ?1";

/// The n-th key, if it is free or its session is dead, gets the counter `?3 + n`, from 1.
const CLAIM: &str = "
    INSERT INTO lease_holds (resource_key, session_id, counter)
    SELECT k.value, ?1, ?3 + k.key + 1 FROM json_each(?2) k WHERE true
    ON CONFLICT (resource_key) DO UPDATE SET session_id = excluded.session_id, counter = excluded.counter
      WHERE NOT EXISTS (SELECT 1 FROM lease_sessions s WHERE s.session_id = lease_holds.session_id)
    RETURNING counter";

const LEFTOVERS_DELETE: &str = "
    DELETE FROM lease_holds WHERE resource_key IN (
        SELECT l.resource_key FROM lease_holds l
         WHERE NOT EXISTS (SELECT 1 FROM lease_sessions s WHERE s.session_id = l.session_id) LIMIT ?1)";

/// Holds of dead sessions deleted in one go.
const LEFTOVERS_MAX: i64 = 10_000;

pub(super) async fn end_dead_sessions(connection: &mut SqliteConnection, moment: &Moment) -> Result<(), Failure> {
    query(SESSIONS_DEAD_DELETE).bind(&*moment.boot_id).bind(moment.boottime_ns).execute(connection).await?;
    Ok(())
}

/// The epoch of this file, registered if it is new.
pub(super) async fn register(connection: &mut SqliteConnection, generation: Uuid, label: &str) -> Result<i64, Failure> {
    let row: Option<(i64, String, String)> = query_as(EPOCH_CURRENT).fetch_optional(&mut *connection).await?;
    let registered = row.map(|(epoch, backend, generation)| Registered { epoch, backend, generation });
    let any_fence = query_scalar(FENCE_EXISTS).fetch_one(&mut *connection).await?;
    let own = generation.to_string();
    // The identity is in the file, so the file always is the one its register names.
    let found = Found { backend: "sql", generation: &own, is_registered_one: true, may_raise: false };
    match judge(registered.as_ref(), any_fence, &found)? {
        Registration::Current { epoch } => Ok(epoch),
        Registration::Fill { epoch } | Registration::Raise { epoch } => {
            query(EPOCH_ADD).bind(epoch).bind(&own).bind(label).execute(connection).await?;
            Ok(epoch)
        }
    }
}

pub(super) async fn claim(
    connection: &mut SqliteConnection,
    moment: &Moment,
    session: SessionId,
    keys: Vec<String>,
) -> Result<(i64, i64, Vec<i64>), Failure> {
    end_dead_sessions(connection, moment).await?;
    let id = session.0.to_string();
    let epoch: Option<i64> = query_scalar(SESSION_EPOCH).bind(&id).fetch_optional(&mut *connection).await?;
    let epoch = epoch.ok_or(LeaseError::SessionLost(session))?;
    let count = i64::try_from(keys.len()).unwrap_or(i64::MAX);
    let before: i64 = query_scalar(COUNTER_RAISE).bind(count).fetch_one(&mut *connection).await?;
    let keys = serde_json::Value::from(keys).to_string();
    let counters = query_scalar(CLAIM).bind(id).bind(keys).bind(before).fetch_all(connection).await?;
    Ok((epoch, before, counters))
}

/// Deletes a bounded number of holds that no session has any more; they were free already.
pub(super) async fn delete_leftovers(connection: &mut SqliteConnection) -> Result<(), Failure> {
    query(LEFTOVERS_DELETE).bind(LEFTOVERS_MAX).execute(connection).await?;
    Ok(())
}
