//! The mock provider in a process of its own, so that its CPU time is its own: started by re-running this program.

use crate::Failure;
use psp_mock::{Config, Mock};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
}

/// Serves until its standard input closes, which also happens when the parent dies.
pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mock = Mock::start(Config { latency: Duration::from_millis(options.latency_ms), ..Config::default() }).await?;
    writeln!(std::io::stdout(), "{}", mock.url())?;
    let mut line = String::new();
    BufReader::new(tokio::io::stdin()).read_line(&mut line).await?;
    mock.stop().await;
    Ok(())
}

/// The child process with its address.
pub(crate) struct MockProcess {
    child: Child,
    pub(crate) url: String,
    pub(crate) pid: u32,
}

impl MockProcess {
    pub(crate) async fn start(latency: Duration) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["mock", "--latency-ms", &latency.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the mock has no standard output")?;
        let url = BufReader::new(stdout).lines().next_line().await?.ok_or("the mock ended before it listened")?;
        let pid = child.id().ok_or("the mock ended at once")?;
        Ok(Self { child, url, pid })
    }

    /// Makes payments known to it, a thousand at a time.
    pub(crate) async fn add_payments(&self, references: &[String]) -> Result<(), Failure> {
        let client = reqwest::Client::new();
        for part in references.chunks(1_000) {
            let payments: Vec<_> = part
                .iter()
                .map(|reference| serde_json::json!({"id": reference, "amount": 100_000, "currency": "eur"}))
                .collect();
            let answer = client.post(format!("{}/_mock/payments", self.url)).json(&payments).send().await?;
            let status = answer.status();
            if !status.is_success() {
                return Err(format!("the mock refused payments: {status} {}", answer.text().await?).into());
            }
        }
        Ok(())
    }

    /// Its own count of what it executed.
    pub(crate) async fn totals(&self) -> Result<serde_json::Value, Failure> {
        let mut counters: serde_json::Value =
            reqwest::get(format!("{}/_mock/counters?limit=1", self.url)).await?.json().await?;
        Ok(counters["totals"].take())
    }

    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        self.child.wait().await?;
        Ok(())
    }
}
