//! Opening a session: checks that this server is the registered generation, registers it where the rules allow, then adds the row.
//!
//! One transaction. The usual case, an epoch that is current, reads and inserts; registering takes the counter's row first, so no claim
//! is under way while the epoch changes, and sessions of an older epoch are dead from the commit on. A raise is on record in the audit
//! log in the same transaction.

use super::calls::Failure;
use super::generation::Generation;
use crate::lease::register::{Found, Registered, Registration, judge};
use crate::store::postgres::audit_log::{self, Deed};
use jobs::ids::SessionId;
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, query, query_as, query_scalar};

/// On a standby this is an error, as it should be: a session there could not be written anyway.
const TIMELINE: &str = "SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)";

const SYSTEM_READABLE: &str = "SELECT has_function_privilege('pg_control_system()', 'execute')";

const SYSTEM: &str = "SELECT system_identifier::text FROM pg_control_system()";

const EPOCH_CURRENT: &str = "SELECT epoch, backend, generation FROM lease_epochs ORDER BY epoch DESC LIMIT 1";

const FENCE_EXISTS: &str = "SELECT EXISTS (SELECT FROM refund_intents WHERE fence_epoch > 0)";

const COUNTER_LOCK: &str = "SELECT counter FROM lease_counter WHERE only_row FOR UPDATE";

const EPOCH_ADD: &str =
    "INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES ($1, 'sql', $2, $3)";

const SESSION_ADD: &str = "
    INSERT INTO lease_sessions (session_id, label, epoch, ttl_ms, expires_at)
    VALUES ($1, $2, $3, $4, clock_timestamp() + $4 * interval '1 millisecond') ON CONFLICT (session_id) DO NOTHING";

/// False if the identity was used before.
pub(super) async fn open(
    connection: &mut PgConnection,
    session: SessionId,
    label: &str,
    ttl_ms: i64,
) -> Result<bool, Failure> {
    let mut transaction = connection.begin().await?;
    let epoch = register(&mut transaction, label).await?;
    let added =
        query(SESSION_ADD).bind(session.0).bind(label).bind(epoch).bind(ttl_ms).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(added.rows_affected() == 1)
}

/// The epoch of this server, registered if need be.
async fn register(connection: &mut PgConnection, label: &str) -> Result<i64, Failure> {
    let here = read_generation(connection).await?;
    if let Registration::Current { epoch } = judge_here(connection, &here).await?.1 {
        return Ok(epoch);
    }
    query(COUNTER_LOCK).execute(&mut *connection).await?;
    let (registered, verdict) = judge_here(connection, &here).await?;
    match verdict {
        Registration::Current { epoch } => Ok(epoch),
        Registration::Fill { epoch } => {
            query(EPOCH_ADD).bind(epoch).bind(here.to_string()).bind(label).execute(connection).await?;
            Ok(epoch)
        }
        Registration::Raise { epoch } => {
            query(EPOCH_ADD).bind(epoch).bind(here.to_string()).bind(label).execute(&mut *connection).await?;
            record_raise(connection, label, registered.as_ref(), epoch, &here).await?;
            Ok(epoch)
        }
    }
}

async fn read_generation(connection: &mut PgConnection) -> Result<Generation, Failure> {
    let timeline = query_scalar(TIMELINE).fetch_one(&mut *connection).await?;
    let readable: bool = query_scalar(SYSTEM_READABLE).fetch_one(&mut *connection).await?;
    let system = if readable { Some(query_scalar(SYSTEM).fetch_one(connection).await?) } else { None };
    Ok(Generation { timeline, system })
}

async fn judge_here(
    connection: &mut PgConnection,
    here: &Generation,
) -> Result<(Option<Registered>, Registration), Failure> {
    let row: Option<(i64, String, String)> = query_as(EPOCH_CURRENT).fetch_optional(&mut *connection).await?;
    let registered = row.map(|(epoch, backend, generation)| Registered { epoch, backend, generation });
    let any_fence = match registered {
        Some(_) => true,
        None => query_scalar(FENCE_EXISTS).fetch_one(connection).await?,
    };
    let known = registered.as_ref().and_then(|registered| Generation::parse(&registered.generation));
    let found = Found {
        backend: "sql",
        generation: &here.to_string(),
        is_registered_one: known.is_some_and(|known| known.is_same(here)),
        may_raise: true,
    };
    let verdict = judge(registered.as_ref(), any_fence, &found)?;
    Ok((registered, verdict))
}

async fn record_raise(
    connection: &mut PgConnection,
    label: &str,
    registered: Option<&Registered>,
    epoch: i64,
    here: &Generation,
) -> Result<(), Failure> {
    let before =
        registered.map(|row| json!({ "epoch": row.epoch, "backend": row.backend, "generation": row.generation }));
    let after = json!({ "epoch": epoch, "backend": "sql", "generation": here.to_string() });
    let deed = Deed {
        actor: label,
        action: "lease.epoch.raise",
        object: &format!("epoch/{epoch}"),
        reason: "the database is another generation: its timeline or its system changed",
        before,
        after: Some(after),
    };
    audit_log::lock(connection).await?;
    Ok(audit_log::add(connection, &deed).await?)
}
