//! Brings a database file to the schema this program knows.
//!
//! The migrations take no lock of their own on this engine, so two programs that open a new file at once would both create its
//! tables. All pending migrations therefore run inside one transaction that holds the file's write lock: the second program waits,
//! then finds nothing to do. A crash in the middle leaves the file as it was. A file that is ahead of this program is left alone:
//! migrations are forward only and old code runs on the new schema.

use super::connect::{Connections, store_error};
use crate::store::StoreError;
use sqlx::SqliteConnection;
use sqlx::migrate::MigrateError;

/// Applies what is pending of `migrations/sqlite`.
pub(super) async fn run(connections: &Connections) -> Result<(), StoreError> {
    connections.write(|connection| Box::pin(run_inside(connection))).await
}

async fn run_inside(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut migrator = sqlx::migrate!("../migrations/sqlite");
    migrator.set_ignore_missing(true).set_locking(false);
    migrator.run_direct(None, connection, false).await.map_err(|error| match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => store_error(error),
        other => StoreError::Refused(other.to_string()),
    })
}
