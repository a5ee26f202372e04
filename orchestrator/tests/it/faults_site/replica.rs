//! One `orchestrator serve`, its configuration, and a client for it.

use super::{SOON, Site, until};
use serde_json::Value;
use std::time::Duration;
use testbed::{Process, Program, free_port};

/// A port can be lost between choosing it and listening.
const START_TRIES: usize = 3;

/// What differs between replicas of one site. The defaults: short leases, and a ladder of lookups that takes seconds.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Through a proxy, say; the site's own when absent.
    pub(crate) database_url: Option<String>,
    pub(crate) psp_url: Option<String>,
    pub(crate) connections_max: usize,
    pub(crate) lease_ttl: &'static str,
    pub(crate) lease_margin: &'static str,
    pub(crate) psp_timeout: &'static str,
    pub(crate) absence_window: &'static str,
    pub(crate) key_lifetime: &'static str,
    pub(crate) unknown_ladder: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            database_url: None,
            psp_url: None,
            connections_max: 4,
            lease_ttl: "3s",
            lease_margin: "600ms",
            psp_timeout: "3s",
            absence_window: "1s",
            key_lifetime: "2h",
            unknown_ladder: r#"["0s", "1s", "1s", "1s", "1s", "2s", "2s", "2s", "5s", "5s", "5s"]"#,
        }
    }
}

impl Setup {
    fn config(&self, site: &Site, port: u16) -> String {
        let database_url = self.database_url.clone().unwrap_or_else(|| site.database_url());
        let psp_url = self.psp_url.clone().unwrap_or_else(|| site.mock.url());
        let Self { connections_max, lease_ttl, lease_margin, psp_timeout, absence_window, .. } = self;
        let Self { key_lifetime, unknown_ladder, .. } = self;
        format!(
            r#"
environment = "faults"
[database]
url = "{database_url}"
connections_max = {connections_max}
[lease]
ttl = "{lease_ttl}"
margin = "{lease_margin}"
[api]
listen = "127.0.0.1:{port}"
[worker]
poll = "50ms"
drain = "20s"
[[psp]]
name = "acme"
account = "acct_mock"
kind = "stripe"
base_url = "{psp_url}"
api_key = "sk_test_faults"
timeout = "{psp_timeout}"
absence_window = "{absence_window}"
key_lifetime = "{key_lifetime}"
unknown_ladder = {unknown_ladder}
"#
        )
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// A running replica; it dies with this value.
pub(crate) struct Replica {
    pub(crate) process: Process,
    pub(crate) port: u16,
    http: reqwest::Client,
}

impl Replica {
    pub(super) async fn start(site: &Site, setup: Setup) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        for _ in 0..START_TRIES {
            let port = free_port().unwrap();
            let file = site.folder.join(format!("replica-{port}.toml"));
            std::fs::write(&file, setup.config(site, port)).unwrap();
            let program = Program::new(env!("CARGO_BIN_EXE_orchestrator"));
            let process = program.args(["serve", "--config", &file.to_string_lossy()]).spawn().unwrap();
            let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
            let replica = Self { process, port, http };
            if replica.becomes_ready().await {
                return replica;
            }
            let output = replica.process.output();
            assert!(output.contains("can not listen"), "{output}");
        }
        panic!("every port was lost to somebody else");
    }

    /// False when it ended.
    async fn becomes_ready(&self) -> bool {
        until("a replica to be ready", || async {
            match self.try_get("/readyz").await {
                Some(reply) if reply.status == 200 => Some(true),
                _ => self.process.exit().map(|_| false),
            }
        })
        .await
    }

    /// Awaits that it takes work, or takes it again.
    pub(crate) async fn is_ready(&self) {
        assert!(self.becomes_ready().await, "the replica ended:\n{}", self.process.output());
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    async fn try_send(&self, request: reqwest::RequestBuilder) -> Option<Reply> {
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.ok()?;
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        Some(Reply { status, body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()) })
    }

    /// None without an answer.
    pub(crate) async fn try_get(&self, path: &str) -> Option<Reply> {
        self.try_send(self.http.get(self.url(path))).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let reply = self.try_get(path).await;
        reply.unwrap_or_else(|| panic!("no answer to {path}:\n{}", self.process.output()))
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        let reply = self.try_send(self.http.post(self.url(path)).json(&body)).await;
        reply.unwrap_or_else(|| panic!("no answer to {path}:\n{}", self.process.output()))
    }

    pub(crate) async fn refund(&self, intent: &str, payment: &str, minor: i64, currency: &str) -> Reply {
        let body = serde_json::json!({ "intent_id": intent, "payment_id": payment, "amount_minor": minor.to_string(),
            "currency": currency });
        self.post("/v1/refunds", body).await
    }

    /// Submits a refund that is taken.
    pub(crate) async fn submit(&self, intent: &str, payment: &str, minor: i64, currency: &str) {
        let reply = self.refund(intent, payment, minor, currency).await;
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    /// Sum of one metric over its labels.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.body;
        let lines =
            text.as_str().unwrap_or_default().lines().filter(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
            });
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// SIGSTOP, and awaits that every thread stands: until then one of them may still take a lock, and keep it.
    pub(crate) async fn stand_still(&self) {
        self.process.pause().unwrap();
        let tasks = format!("/proc/{}/task", self.process.pid());
        until("every thread to stand still", || async {
            let mut threads = std::fs::read_dir(&tasks).ok()?.map(|task| {
                let text = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
                // The state follows the name, which is in parentheses.
                text.rsplit_once(')').map(|(_, rest)| rest.trim_start().starts_with('T'))
            });
            threads.all(|stands| stands == Some(true)).then_some(())
        })
        .await;
    }

    /// SIGKILL, and awaits the end.
    pub(crate) async fn kill(&self) {
        self.process.kill().unwrap();
        self.process.wait_exit(SOON).await.unwrap();
    }
}
