//! What a person at a SQL prompt can do: statements through `psql`, and databases to work in.

use std::fs::{self, File};
use std::process::Command;
use std::sync::atomic::Ordering;

use super::Postgres;
use crate::error::Error;

/// Bounds a statement that waits for a lock which the blocked test holds itself.
const SESSION_OPTIONS: &str = "-c statement_timeout=60s -c client_min_messages=warning";

/// What `psql` said. Code 0: all done, 1: psql's own trouble, 2: no connection, 3: a statement was refused (the rest was not sent).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlOutput {
    /// Rows, one a line, columns split by `|`, no headings.
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl Postgres {
    /// Sends statements, each in its own transaction unless `sql` says BEGIN, and stops at the first that is refused.
    pub fn psql(&self, database: &str, sql: &str) -> Result<SqlOutput, Error> {
        let file = self.place.folder.join(format!("{}.sql", uuid::Uuid::new_v4().simple()));
        fs::write(&file, sql).map_err(Error::io("write statements for psql"))?;
        let input = File::open(&file).map_err(Error::io("read statements for psql"))?;
        let answer = Command::new(self.place.binaries.join("psql"))
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database)])
            .env("PGOPTIONS", SESSION_OPTIONS)
            .env("PGCONNECT_TIMEOUT", "10")
            .stdin(input)
            .output()
            .map_err(Error::io("run psql"))?;
        fs::remove_file(&file).map_err(Error::io("remove the statements for psql"))?;
        Ok(SqlOutput {
            stdout: String::from_utf8_lossy(&answer.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&answer.stderr).into_owned(),
            code: answer.status.code().unwrap_or(-1),
        })
    }

    /// As [`Postgres::psql`], where anything but success is an error.
    pub fn must_psql(&self, database: &str, sql: &str) -> Result<String, Error> {
        let output = self.psql(database, sql)?;
        if output.code == 0 {
            return Ok(output.stdout);
        }
        Err(Error::Command { command: "psql", code: Some(output.code), output: output.stderr })
    }

    /// A fresh, empty database of a name nobody else has.
    pub fn create_database(&self) -> Result<String, Error> {
        self.create_from("template0")
    }

    /// A fresh copy of `template`, which nobody may be connected to: cheaper than running migrations again.
    pub fn clone_database(&self, template: &str) -> Result<String, Error> {
        self.create_from(template)
    }

    fn create_from(&self, template: &str) -> Result<String, Error> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.must_psql("postgres", &format!("CREATE DATABASE {name} TEMPLATE \"{template}\""))?;
        Ok(name)
    }
}
