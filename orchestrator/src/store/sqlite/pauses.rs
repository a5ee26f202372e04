//! Stopping a provider's creates and letting them go on.

use super::super::StoreError;
use super::connect::store_error;
use super::statement::now_micros;
use sqlx::SqliteConnection;

/// Who does what to which provider, and why.
#[derive(Debug)]
pub(super) struct Deed {
    psp: String,
    actor: String,
    reason: String,
}

impl Deed {
    pub(super) fn new(psp: &str, actor: &str, reason: &str) -> Self {
        Self { psp: psp.to_owned(), actor: actor.to_owned(), reason: reason.to_owned() }
    }
}

const PAUSE_UPSERT: &str = "
    INSERT INTO psp_pauses (psp, actor, reason, paused_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (psp) DO UPDATE SET actor = excluded.actor, reason = excluded.reason, paused_at = excluded.paused_at";

const PAUSE_DELETE: &str = "DELETE FROM psp_pauses WHERE psp = ?1";

/// Stops creates; a paused provider gets the new reason.
pub(super) async fn pause(connection: &mut SqliteConnection, deed: Deed) -> Result<(), StoreError> {
    let now = now_micros(connection).await?;
    sqlx::query(PAUSE_UPSERT)
        .bind(&deed.psp)
        .bind(&deed.actor)
        .bind(&deed.reason)
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Lets creates go on; false if they were not stopped.
pub(super) async fn resume(connection: &mut SqliteConnection, deed: Deed) -> Result<bool, StoreError> {
    let done = sqlx::query(PAUSE_DELETE).bind(&deed.psp).execute(&mut *connection).await.map_err(store_error)?;
    Ok(done.rows_affected() > 0)
}
