//! Settings of a private PostgreSQL.

use std::path::Path;

/// How a private server is set up. The default is fast and safe against killed processes, not against a killed machine.
#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    /// Write through to the disk. Keep it on where figures are taken.
    pub fsync: bool,
    /// Further settings by name, such as `("max_prepared_transactions", "10")`; the last of a name wins.
    pub settings: Vec<(String, String)>,
}

impl PostgresOptions {
    /// With fsync, for benchmarks and crash drills.
    pub fn durable() -> PostgresOptions {
        PostgresOptions { fsync: true, settings: Vec::new() }
    }

    /// Adds a setting.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> PostgresOptions {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn arguments(&self, data: &Path, port: u16) -> Vec<String> {
        let mut arguments = vec!["-D".to_owned(), data.to_string_lossy().into_owned()];
        let on_off = if self.fsync { "on" } else { "off" };
        let port = port.to_string();
        let fixed = [
            ("port", port.as_str()),
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("fsync", on_off),
            ("full_page_writes", on_off),
            // Every test of a process brings pools of its own.
            ("max_connections", "300"),
            ("timezone", "UTC"),
        ];
        let further = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in fixed.into_iter().chain(further) {
            arguments.push("-c".to_owned());
            arguments.push(format!("{name}={value}"));
        }
        arguments
    }
}
