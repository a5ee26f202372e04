//! The schema on either engine: which migrations are known, which are pending, and applying them.
//!
//! Forward only. A database that is ahead of this program is left alone. On PostgreSQL this is [`super::migrate`]; a SQLite file is
//! brought forward by the store itself, in one transaction, when it opens the file.

use super::sqlite::{SqliteOptions, SqlitePlace, SqliteStore};
use super::{StoreError, migrate as postgres};
use crate::config::DatabaseUrl;
use secrecy::{ExposeSecret, SecretString};
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, PgConnection, SqliteConnection};
use std::path::Path;
use std::time::Duration;

static SQLITE: Migrator = sqlx::migrate!("../migrations/sqlite");

/// A question to the database ends after this long.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Migrations may rewrite tables.
const MIGRATE_MAX: Duration = Duration::from_secs(3_600);

const STANDBYS: &str = "SELECT current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication),
    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))";
const EPOCH: &str = "SELECT epoch, backend, generation FROM lease_epochs ORDER BY epoch DESC LIMIT 1";
const SQLITE_KNOWN: &str = "SELECT count(*) > 0 FROM sqlite_master WHERE name = '_sqlx_migrations'";
const SQLITE_APPLIED: &str = "SELECT version FROM _sqlx_migrations WHERE success";

/// One step of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    pub version: i64,
    pub name: String,
}

/// What a PostgreSQL says about standbys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standbys {
    /// `synchronous_standby_names`; empty when commits wait for none.
    pub synchronous_names: String,
    pub connected: i64,
    /// Of those, how many a commit waits for.
    pub synchronous: i64,
}

/// What has not been applied yet. A SQLite file that does not exist lacks everything.
pub async fn pending(url: &DatabaseUrl) -> Result<Vec<Migration>, StoreError> {
    let versions: Vec<i64> = match url {
        DatabaseUrl::Postgres(url) => {
            let pending = within(ANSWER_MAX, postgres::pending(url)).await?;
            return Ok(pending.into_iter().map(of_postgres).collect());
        }
        DatabaseUrl::Sqlite(path) if !path.exists() => Vec::new(),
        DatabaseUrl::Sqlite(path) => within(ANSWER_MAX, async { applied(path).await.map_err(failed) }).await?,
    };
    let name =
        |known: &sqlx::migrate::Migration| Migration { version: known.version, name: known.description.to_string() };
    Ok(SQLITE.iter().filter(|known| !versions.contains(&known.version)).map(name).collect())
}

/// Applies what is pending.
pub async fn migrate(url: &DatabaseUrl) -> Result<(), StoreError> {
    match url {
        DatabaseUrl::Postgres(url) => within(MIGRATE_MAX, postgres::migrate(url)).await.map(drop),
        DatabaseUrl::Sqlite(path) => {
            let place = SqlitePlace::File(path.clone());
            within(MIGRATE_MAX, async {
                SqliteStore::open(SqliteOptions { place }).await?.close().await;
                Ok(())
            })
            .await
        }
    }
}

/// All steps on PostgreSQL, for when no database is named.
#[must_use]
pub fn known_on_postgres() -> Vec<Migration> {
    postgres::known().into_iter().map(of_postgres).collect()
}

/// The statements of these steps.
#[must_use]
pub fn sql_of(url: Option<&DatabaseUrl>, migrations: &[Migration]) -> String {
    if let Some(DatabaseUrl::Sqlite(_)) = url {
        let wanted = |known: &&sqlx::migrate::Migration| migrations.iter().any(|step| step.version == known.version);
        let text = |known: &sqlx::migrate::Migration| {
            format!("-- {:04} {}\n{}\n", known.version, known.description, known.sql.as_str())
        };
        return SQLITE.iter().filter(wanted).map(text).collect();
    }
    let steps =
        migrations.iter().map(|step| postgres::Migration { version: step.version, description: step.name.clone() });
    postgres::sql_of(&steps.collect::<Vec<_>>())
}

fn of_postgres(migration: postgres::Migration) -> Migration {
    Migration { version: migration.version, name: migration.description }
}

/// Whether a commit waits for a standby; `None` on SQLite, which has none.
pub async fn standbys(url: &DatabaseUrl) -> Result<Option<Standbys>, StoreError> {
    match url {
        DatabaseUrl::Sqlite(_) => Ok(None),
        DatabaseUrl::Postgres(url) => {
            within(ANSWER_MAX, async { read_standbys(url).await.map(Some).map_err(failed) }).await
        }
    }
}

async fn read_standbys(url: &SecretString) -> Result<Standbys, sqlx::Error> {
    let mut connection = PgConnection::connect(url.expose_secret()).await?;
    let (synchronous_names, connected, synchronous): (String, i64, i64) =
        sqlx::query_as(STANDBYS).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(Standbys { synchronous_names, connected, synchronous })
}

/// The lease service that the database knows as the current one.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct CurrentEpoch {
    pub epoch: i64,
    pub backend: String,
    pub generation: String,
}

/// The current epoch; `None` before the first session.
pub async fn current_epoch(url: &DatabaseUrl) -> Result<Option<CurrentEpoch>, StoreError> {
    let read = async {
        match url {
            DatabaseUrl::Postgres(url) => {
                let mut connection = PgConnection::connect(url.expose_secret()).await?;
                let epoch = sqlx::query_as(EPOCH).fetch_optional(&mut connection).await?;
                connection.close().await?;
                Ok(epoch)
            }
            DatabaseUrl::Sqlite(path) => {
                let mut connection = open_sqlite(path).await?;
                let epoch = sqlx::query_as(EPOCH).fetch_optional(&mut connection).await?;
                connection.close().await?;
                Ok(epoch)
            }
        }
    };
    within(ANSWER_MAX, async { read.await.map_err(failed) }).await
}

async fn open_sqlite(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path).read_only(true)).await
}

async fn applied(path: &Path) -> Result<Vec<i64>, sqlx::Error> {
    let mut connection = open_sqlite(path).await?;
    let exists: bool = sqlx::query_scalar(SQLITE_KNOWN).fetch_one(&mut connection).await?;
    let versions =
        if exists { sqlx::query_scalar(SQLITE_APPLIED).fetch_all(&mut connection).await? } else { Vec::new() };
    connection.close().await?;
    Ok(versions)
}

fn failed(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |_| StoreError::Unavailable(format!("no answer within {} s", limit.as_secs()));
    tokio::time::timeout(limit, work).await.map_err(late)?
}
