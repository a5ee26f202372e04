//! The configuration: one TOML file, typed per concern, read once, checked in full before any work starts.
//!
//! Every problem found is told at once, each with its key and what to do. Unknown keys are refused, so a typo never becomes a
//! silent default. Secrets may stand in the file or, better, be named as environment variables; they are wrapped so that no
//! debug print shows them. Left out: reloading while running. A changed file takes effect with a restart.

mod check;
mod concerns;
mod duration;
mod psp;

pub use check::{ConfigError, Problem};
pub use concerns::{Api, Database, DatabaseUrl, Lease, Log, LogFormat, check_listen};
pub use duration::{DurationError, parse_duration};
pub use psp::{Psp, PspKind};

use crate::work::WorkerOptions;
use check::Checker;
use serde::Deserialize;
use std::path::Path;

/// Longest file read; a configuration is a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// It becomes part of every idempotency key.
const ENVIRONMENT_LENGTH_MAX: usize = 32;

/// Everything that is set from outside.
#[derive(Debug, Clone)]
pub struct Config {
    /// Part of every idempotency key: two environments on one PSP account never share a key.
    pub environment: String,
    pub database: Database,
    pub lease: Lease,
    pub api: Api,
    pub worker: WorkerOptions,
    pub log: Log,
    /// In the order of the file; names are unique.
    pub psps: Vec<Psp>,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    environment: String,
    database: concerns::DatabaseFile,
    #[serde(default)]
    lease: concerns::LeaseFile,
    #[serde(default)]
    api: concerns::ApiFile,
    #[serde(default)]
    worker: concerns::WorkerFile,
    #[serde(default)]
    log: concerns::LogFile,
    #[serde(default)]
    psp: Vec<psp::PspFile>,
}

impl Config {
    /// Reads and checks a file. `environment_variable` answers what the process was started with.
    pub fn read(path: &Path, environment_variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let named = path.display().to_string();
        let failed = |problem: String| ConfigError::unreadable(&named, &problem);
        let length = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
        if length > FILE_BYTES_MAX {
            return Err(failed(format!("it has {length} bytes, at most {FILE_BYTES_MAX} are read")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&named, &text, environment_variable)
    }

    /// Checks a file's text; `named` is how messages call it.
    pub fn parse(
        named: &str,
        text: &str,
        environment_variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(|error| ConfigError::not_toml(named, text, &error))?;
        let mut checker = Checker::new(environment_variable);
        checker.identifier("environment", &file.environment, ENVIRONMENT_LENGTH_MAX);
        let database = file.database.check(&mut checker);
        let lease = file.lease.check(&mut checker);
        let api = file.api.check(&mut checker);
        let worker = file.worker.check(&mut checker);
        let log = file.log.check(&mut checker);
        let psps = psp::check_all(file.psp, &mut checker);
        let config = match (database, api) {
            (Some(database), Some(api)) => {
                Some(Self { environment: file.environment, database, lease, api, worker, log, psps })
            }
            _ => None,
        };
        checker.finish(named, config)
    }
}
