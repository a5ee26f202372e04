//! `orchestrator migrate [--dry-run] [--print-sql]`: brings the schema up to date, forward only.
//!
//! Run it before new replicas start: old code runs on the new schema. On PostgreSQL the role of this address owns the tables;
//! replicas need only a role that may use them.

use super::exit::Failure;
use super::output::{print, say};
use super::serve::read_config;
use crate::config::DatabaseUrl;
use crate::store::schema;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Take the database from this configuration.
    #[arg(long, value_name = "FILE", conflicts_with = "database_url")]
    config: Option<PathBuf>,
    /// postgres://... or sqlite:PATH; better given as environment variable, where no process list shows it.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
    /// Say what is pending and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the SQL of what is pending (all of it when no database is named) and change nothing.
    #[arg(long)]
    print_sql: bool,
}

pub(crate) async fn run(args: MigrateArgs) -> Result<(), Failure> {
    let url = match (&args.config, &args.database_url) {
        (Some(file), _) => Some(read_config(file)?.database.url),
        (None, Some(text)) => {
            Some(DatabaseUrl::parse(text).map_err(|problem| Failure::usage(format!("--database-url {problem}")))?)
        }
        (None, None) => None,
    };
    let Some(url) = url else {
        if args.print_sql {
            return print(&schema::sql_of(None, &schema::known_on_postgres()));
        }
        return Err(Failure::usage("no database named: give --config FILE or --database-url URL"));
    };
    let failed = |error: crate::store::StoreError| Failure::failed(error.to_string());
    let pending = schema::pending(&url).await.map_err(failed)?;
    if args.print_sql {
        return print(&schema::sql_of(Some(&url), &pending));
    }
    for migration in &pending {
        say(&format!(
            "{} {:04} {}",
            if args.dry_run { "pending" } else { "applying" },
            migration.version,
            migration.name
        ));
    }
    if args.dry_run {
        if pending.is_empty() {
            say("the schema is up to date");
        }
        return Ok(());
    }
    // Also with nothing pending: a runtime role that was made since the last run is granted what it needs.
    schema::migrate(&url).await.map_err(failed)?;
    say("the schema is up to date");
    Ok(())
}
