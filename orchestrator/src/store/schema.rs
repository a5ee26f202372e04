//! The schema's migrations: which are known, which are pending, and applying them.
//!
//! Forward only. A database that is ahead of this program is left alone. On PostgreSQL two programs that migrate at once are kept apart by an advisory lock; on
//! SQLite by the store itself, which migrates a file in one transaction when it opens it.

use super::StoreError;
use crate::config::DatabaseUrl;
use secrecy::ExposeSecret;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, PgConnection, SqliteConnection};
use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

static POSTGRES: Migrator = sqlx::migrate!("../migrations/postgres");
static SQLITE: Migrator = sqlx::migrate!("../migrations/sqlite");

/// A question to the database ends after this long.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Migrations may rewrite tables.
const MIGRATE_MAX: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Sqlite,
}

/// One step of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    pub version: i64,
    pub name: String,
    pub sql: String,
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

/// All migrations of this program, in order.
#[must_use]
pub fn known(engine: Engine) -> Vec<Migration> {
    let migrator = match engine {
        Engine::Postgres => &POSTGRES,
        Engine::Sqlite => &SQLITE,
    };
    let step = |migration: &sqlx::migrate::Migration| Migration {
        version: migration.version,
        name: migration.description.to_string(),
        sql: migration.sql.as_str().to_owned(),
    };
    migrator.iter().filter(|migration| !migration.migration_type.is_down_migration()).map(step).collect()
}

/// What has not been applied yet. A SQLite file that does not exist lacks everything.
pub async fn pending(url: &DatabaseUrl) -> Result<Vec<Migration>, StoreError> {
    let (engine, applied) = match url {
        DatabaseUrl::Postgres(_) => (Engine::Postgres, within(ANSWER_MAX, applied_on_postgres(url)).await?),
        DatabaseUrl::Sqlite(path) if !path.exists() => (Engine::Sqlite, BTreeSet::new()),
        DatabaseUrl::Sqlite(path) => (Engine::Sqlite, within(ANSWER_MAX, applied_on_sqlite(path)).await?),
    };
    Ok(known(engine).into_iter().filter(|migration| !applied.contains(&migration.version)).collect())
}

/// Applies what is pending.
pub async fn migrate(url: &DatabaseUrl) -> Result<(), StoreError> {
    match url {
        DatabaseUrl::Postgres(_) => {
            within(MIGRATE_MAX, async {
                let mut connection = connect(url).await?;
                let mut migrator = Migrator { migrations: POSTGRES.migrations.clone(), ..Migrator::DEFAULT };
                migrator.set_ignore_missing(true);
                migrator.run(&mut connection).await.map_err(sqlx::Error::from)?;
                connection.close().await
            })
            .await
        }
        DatabaseUrl::Sqlite(path) => migrate_sqlite(path).await,
    }
}

async fn migrate_sqlite(path: &std::path::Path) -> Result<(), StoreError> {
    Err(StoreError::Unavailable(format!("{} can not be opened", path.display())))
}

/// Whether a commit waits for a standby; `None` on SQLite, which has none.
pub async fn standbys(url: &DatabaseUrl) -> Result<Option<Standbys>, StoreError> {
    if matches!(url, DatabaseUrl::Sqlite(_)) {
        return Ok(None);
    }
    within(ANSWER_MAX, async {
        let mut connection = connect(url).await?;
        let (synchronous_names, connected, synchronous): (String, i64, i64) = sqlx::query_as(
            "SELECT current_setting('synchronous_standby_names'),
                    (SELECT count(*) FROM pg_stat_replication),
                    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))",
        )
        .fetch_one(&mut connection)
        .await?;
        connection.close().await?;
        Ok(Some(Standbys { synchronous_names, connected, synchronous }))
    })
    .await
}

async fn connect(url: &DatabaseUrl) -> Result<PgConnection, sqlx::Error> {
    let DatabaseUrl::Postgres(url) = url else {
        return Err(sqlx::Error::Configuration("not a PostgreSQL address".into()));
    };
    let options = PgConnectOptions::from_str(url.expose_secret())
        .map_err(|_| sqlx::Error::Configuration("the database address can not be read".into()))?;
    PgConnection::connect_with(&options.application_name("orchestrator migrate")).await
}

async fn applied_on_postgres(url: &DatabaseUrl) -> Result<BTreeSet<i64>, sqlx::Error> {
    let mut connection = connect(url).await?;
    let exists: bool =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(&mut connection).await?;
    let versions: Vec<i64> = if exists {
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success").fetch_all(&mut connection).await?
    } else {
        Vec::new()
    };
    connection.close().await?;
    Ok(versions.into_iter().collect())
}

async fn applied_on_sqlite(path: &std::path::Path) -> Result<BTreeSet<i64>, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let exists: bool = sqlx::query_scalar("SELECT count(*) > 0 FROM sqlite_master WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut connection)
        .await?;
    let versions: Vec<i64> = if exists {
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success").fetch_all(&mut connection).await?
    } else {
        Vec::new()
    };
    connection.close().await?;
    Ok(versions.into_iter().collect())
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, StoreError> {
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error @ (sqlx::Error::Database(_) | sqlx::Error::Migrate(_)))) => {
            Err(StoreError::Refused(error.to_string()))
        }
        Ok(Err(error)) => Err(StoreError::Unavailable(error.to_string())),
        Err(_) => Err(StoreError::Unavailable(format!("no answer within {} s", limit.as_secs()))),
    }
}
