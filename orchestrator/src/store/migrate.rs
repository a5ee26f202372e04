//! The schema of PostgreSQL, embedded in the binary and brought forward by the owner role.
//!
//! Two processes that migrate at once queue on sqlx's advisory lock. A migration is there or not; after a crash the next run goes
//! on. Migrations only go forward, and an applied file that was edited is refused. The role `refund_runtime`, where it exists, is
//! granted again what it needs after every run, also for new tables.

use super::StoreError;
use secrecy::{ExposeSecret, SecretString};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor, Row};
use std::fmt::Write;

static MIGRATOR: Migrator = sqlx::migrate!("../migrations/postgres");

const GRANTS: &str = include_str!("postgres/sql/grants.sql");

const MIGRATIONS_KNOWN: &str = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";

const MIGRATIONS_APPLIED: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";

/// One step of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    pub version: i64,
    pub description: String,
}

/// Brings the schema forward; returns what it applied.
pub async fn migrate(url: &SecretString) -> Result<Vec<Migration>, StoreError> {
    let mut connection = open(url).await?;
    let missing = missing(&mut connection).await?;
    MIGRATOR.run(&mut connection).await.map_err(refused)?;
    connection.execute(GRANTS).await.map_err(unavailable)?;
    connection.close().await.map_err(unavailable)?;
    Ok(missing)
}

/// What [`migrate`] would apply now. The service does not start while there is any.
pub async fn pending(url: &SecretString) -> Result<Vec<Migration>, StoreError> {
    let mut connection = open(url).await?;
    let missing = missing(&mut connection).await?;
    connection.close().await.map_err(unavailable)?;
    Ok(missing)
}

/// The statements of these versions, to be read before they are run.
#[must_use]
pub fn sql_of(migrations: &[Migration]) -> String {
    let mut text = String::new();
    for migration in MIGRATOR.iter().filter(|known| migrations.iter().any(|wanted| wanted.version == known.version)) {
        let written =
            writeln!(text, "-- {:04} {}\n{}", migration.version, migration.description, migration.sql.as_str());
        debug_assert!(written.is_ok(), "writing to a string");
    }
    text
}

/// All steps this binary knows.
#[must_use]
pub fn known() -> Vec<Migration> {
    let describe = |known: &sqlx::migrate::Migration| Migration {
        version: known.version,
        description: known.description.clone().into_owned(),
    };
    MIGRATOR.iter().map(describe).collect()
}

async fn open(url: &SecretString) -> Result<PgConnection, StoreError> {
    PgConnection::connect(url.expose_secret()).await.map_err(unavailable)
}

async fn missing(connection: &mut PgConnection) -> Result<Vec<Migration>, StoreError> {
    let exists: bool = sqlx::query(MIGRATIONS_KNOWN)
        .fetch_one(&mut *connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(unavailable)?;
    if !exists {
        return Ok(known());
    }
    let rows = sqlx::query(MIGRATIONS_APPLIED).fetch_all(connection).await.map_err(unavailable)?;
    let applied = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>().map_err(unavailable)?;
    Ok(known().into_iter().filter(|known| !applied.contains(&known.version)).collect())
}

fn unavailable(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn refused(error: MigrateError) -> StoreError {
    StoreError::Refused(error.to_string())
}
