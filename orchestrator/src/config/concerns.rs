//! Database, leases, API, worker and log.

use super::check::Checker;
use crate::work::WorkerOptions;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Where everything is kept.
#[derive(Debug, Clone)]
pub struct Database {
    pub url: DatabaseUrl,
    pub connections_max: u32,
}

/// Which engine, and where it is.
#[derive(Debug, Clone)]
pub enum DatabaseUrl {
    Postgres(SecretString),
    /// One host only.
    Sqlite(PathBuf),
}

impl DatabaseUrl {
    /// Reads `postgres://...` or `sqlite:PATH`; the message never repeats the address, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(SecretString::from(text)));
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:"));
        match path {
            Some(path) if !path.is_empty() && path != ":memory:" => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err("is neither postgres://USER@HOST/DATABASE nor sqlite:PATH to a file".to_owned()),
        }
    }
}

/// How this replica holds what it works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub ttl: Duration,
    /// Trust ends this long before the lease service may give a hold to someone else.
    pub margin: Duration,
}

/// Where the API listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    pub listen: SocketAddr,
    pub request_timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    /// A filter such as `info` or `orchestrator=debug`.
    pub filter: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatabaseFile {
    url: Option<SecretString>,
    url_env: Option<String>,
    connections_max: Option<usize>,
}

impl DatabaseFile {
    pub(super) fn check(self, checker: &mut Checker<'_>) -> Option<Database> {
        let url = checker.secret("database.url", self.url, self.url_env.as_deref());
        let connections = checker.count("database.connections_max", self.connections_max, 8, (2, 200));
        let url = url.and_then(|url| {
            DatabaseUrl::parse(url.expose_secret()).map_err(|problem| checker.problem("database.url", problem)).ok()
        });
        Some(Database { url: url?, connections_max: u32::try_from(connections).unwrap_or(u32::MAX) })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseFile {
    backend: Option<String>,
    ttl: Option<String>,
    margin: Option<String>,
}

impl LeaseFile {
    pub(super) fn check(self, checker: &mut Checker<'_>) -> Lease {
        if let Some(backend) = self.backend.filter(|backend| backend != "sql") {
            checker.problem("lease.backend", format!("{backend:?} is not a backend: write \"sql\""));
        }
        let ttl = checker.duration("lease.ttl", self.ttl.as_deref(), 15 * SECOND, (2 * SECOND, 5 * MINUTE));
        let margin = checker.duration("lease.margin", self.margin.as_deref(), ttl / 5, (SECOND / 10, MINUTE));
        // Renewals are sent every third of the TTL; one may be lost before trust ends.
        checker.require(margin <= ttl / 3, "lease.margin", || "is more than a third of lease.ttl: lower it".to_owned());
        Lease { ttl, margin }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiFile {
    listen: Option<String>,
    request_timeout: Option<String>,
}

impl ApiFile {
    pub(super) fn check(self, checker: &mut Checker<'_>) -> Option<Api> {
        let text = self.request_timeout.as_deref();
        let request_timeout = checker.duration("api.request_timeout", text, 30 * SECOND, (5 * SECOND, 5 * MINUTE));
        let listen = match self.listen {
            None => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))),
            Some(text) => check_listen(&text).map_err(|problem| checker.problem("api.listen", problem)).ok(),
        };
        Some(Api { listen: listen?, request_timeout })
    }
}

/// Accepts a loopback address with its port. Anyone who reaches the API can move money, since callers do not show access tokens yet.
pub fn check_listen(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| format!("{text:?} is not an address with a port, such as 127.0.0.1:8080"))?;
    if !address.ip().is_loopback() {
        return Err(format!(
            "{text} can be reached from other hosts, and callers are not authenticated: listen on 127.0.0.1 or [::1]"
        ));
    }
    Ok(address)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkerFile {
    batch: Option<usize>,
    poll: Option<String>,
    linger: Option<String>,
    drain: Option<String>,
}

impl WorkerFile {
    pub(super) fn check(self, checker: &mut Checker<'_>) -> WorkerOptions {
        let default = WorkerOptions::default();
        let batch = checker.count("worker.batch", self.batch, default.batch, (1, crate::store::BATCH_MAX));
        let poll_bounds = (SECOND / 100, 10 * SECOND);
        let poll = checker.duration("worker.poll", self.poll.as_deref(), default.poll, poll_bounds);
        let linger_bounds = (Duration::ZERO, SECOND / 2);
        let linger = checker.duration("worker.linger", self.linger.as_deref(), default.linger, linger_bounds);
        let drain = checker.duration("worker.drain", self.drain.as_deref(), default.drain, (SECOND, 10 * MINUTE));
        WorkerOptions { batch, poll, linger, drain }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogFile {
    #[serde(default)]
    format: LogFormat,
    filter: Option<String>,
}

impl LogFile {
    pub(super) fn check(self, checker: &mut Checker<'_>) -> Log {
        let filter = self.filter.unwrap_or_else(|| "info".to_owned());
        if let Err(error) = tracing_subscriber::EnvFilter::try_new(&filter) {
            checker.problem("log.filter", format!("{error}: write a level such as info"));
        }
        Log { format: self.format, filter }
    }
}
