//! `orchestrator dev`: SQLite, a mock PSP and one replica in one process, with samples of what can go wrong.
//!
//! With `--once` it ends when every sample is final, parked or with the PSP, and tells what happened; without, it goes on serving until
//! Ctrl-C. The mock keeps its book in memory, so an old `--data` folder shows old refunds but the PSP has forgotten them.

use super::ServerArgs;
use super::client::Client;
use super::dev_summary::{Summary, summarize, summary_text};
use super::exit::Failure;
use super::output::{print, print_json, say};
use super::samples::Samples;
use super::serve::{listen, stop_signal};
use crate::api::views::{RefundView, RefundsView};
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config};
use crate::node::{self, Node};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const PSP: &str = "mock";
const ACCOUNT: &str = "acct_mock";
const LOOK: Duration = Duration::from_millis(200);
/// The slowest sample takes 45 seconds.
const ONCE_MAX: Duration = Duration::from_secs(150);

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Where the API listens; 127.0.0.1:8080, or any free port with --once.
    #[arg(long, value_name = "ADDRESS", value_parser = config::check_listen)]
    listen: Option<SocketAddr>,
    /// Keep the database in this folder; without it, a temporary one that is removed at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How long the mock PSP takes to answer a create, such as 45s.
    #[arg(long, value_name = "D", value_parser = config::parse_duration)]
    psp_latency: Option<Duration>,
    /// End when every sample has come to rest.
    #[arg(long)]
    once: bool,
    /// Tell the result as JSON (with --once).
    #[arg(long)]
    json: bool,
}

/// The folder of this run.
struct DataFolder {
    path: PathBuf,
    remove: bool,
}

impl DataFolder {
    fn open(given: Option<PathBuf>) -> Result<Self, Failure> {
        let remove = given.is_none();
        let path =
            given.unwrap_or_else(|| std::env::temp_dir().join(format!("orchestrator-dev-{}", uuid::Uuid::new_v4())));
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::usage(format!("folder {} can not be made: {error}", path.display())))?;
        Ok(Self { path, remove })
    }

    fn database(&self) -> PathBuf {
        self.path.join("orchestrator.sqlite")
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if self.remove
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            say(&format!("folder {} was left behind: {error}", self.path.display()));
        }
    }
}

pub(crate) async fn run(args: DevArgs) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let folder = DataFolder::open(args.data.clone())?;
    let used_before = folder.database().exists();
    let suffix =
        if used_before { format!("-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]) } else { String::new() };
    let samples = Samples::read(&suffix).map_err(Failure::failed)?;
    let mock = start_mock(&args, &samples).await?;
    let default_port = if args.once { 0 } else { 8080 };
    let address = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, default_port)));
    let listener = listen(address).await?;
    let address = listener.local_addr().map_err(|error| Failure::failed(error.to_string()))?;
    let config = configuration(&folder.database(), &mock.url())?;
    node::log_to_stderr(&config.log);
    let parts = node::open_parts(&config, clock.clone()).await.map_err(|error| Failure::failed(error.to_string()))?;
    say(&format!("database {}, mock PSP {}, API http://{address}", folder.database().display(), mock.url()));
    let stop = Arc::new(Notify::new());
    let stopped = stop.clone();
    let signal = stop_signal()?;
    tokio::pin!(signal);
    let mut running = tokio::spawn(Node::new(parts).run(listener, async move { stopped.notified().await }));
    let result = tokio::select! {
        biased;
        ended = &mut running => return node_ended(ended),
        () = &mut signal => interrupted(args.once),
        result = show(&args, &samples, &mock, address, &*clock) => {
            if result.is_ok() && !args.once {
                where_to_look(address);
                tokio::select! {
                    biased;
                    ended = &mut running => return node_ended(ended),
                    () = &mut signal => {}
                }
            }
            result
        }
    };
    stop.notify_one();
    node_ended(running.await)?;
    mock.stop().await;
    result
}

/// Ctrl-C while the samples are on their way.
fn interrupted(once: bool) -> Result<(), Failure> {
    if once { Err(Failure::failed("stopped before the samples came to rest")) } else { Ok(()) }
}

fn node_ended(ended: Result<std::io::Result<()>, tokio::task::JoinError>) -> Result<(), Failure> {
    ended.map_err(|error| Failure::failed(error.to_string()))?.map_err(|error| Failure::failed(error.to_string()))
}

async fn start_mock(args: &DevArgs, samples: &Samples) -> Result<psp_mock::Mock, Failure> {
    let config = psp_mock::Config {
        latency: args.psp_latency.unwrap_or(Duration::from_millis(50)),
        default_account: ACCOUNT.to_owned(),
        ..psp_mock::Config::default()
    };
    let mock = psp_mock::Mock::start(config)
        .await
        .map_err(|error| Failure::failed(format!("the mock PSP did not start: {error}")))?;
    samples.prepare(&mock).map_err(Failure::failed)?;
    Ok(mock)
}

/// As a file would say it, so that `dev` runs what `serve` runs.
fn configuration(database: &Path, mock_url: &str) -> Result<Config, Failure> {
    let text = format!(
        "environment = \"dev\"\n\
         [database]\nurl = {}\n\
         [lease]\nttl = \"6s\"\n\
         [worker]\npoll = \"100ms\"\ndrain = \"5s\"\n\
         [log]\nfilter = {}\n\
         [[psp]]\nname = \"{PSP}\"\naccount = \"{ACCOUNT}\"\nkind = \"stripe\"\nbase_url = {}\napi_key = \"sk_test_dev\"\nabsence_window = \"20s\"\n",
        toml_text(&format!("sqlite:{}", database.display())),
        toml_text(&super::environment_variable("RUST_LOG").unwrap_or_else(|| "error".to_owned())),
        toml_text(mock_url),
    );
    Config::parse("the configuration of dev", &text, &super::environment_variable)
        .map_err(|error| Failure::failed(error.to_string()))
}

/// A TOML string. Its escapes are those of JSON.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string()
}

/// Submits the samples and tells how they fare.
async fn show(
    args: &DevArgs,
    samples: &Samples,
    mock: &psp_mock::Mock,
    address: SocketAddr,
    clock: &dyn Clock,
) -> Result<(), Failure> {
    let client = Client::new(&ServerArgs { server: format!("http://{address}"), token: None })?;
    let started = clock.boottime();
    client.post::<Value>(&["v1", "payments"], &samples.payment_bodies(PSP)).await?;
    for refund in &samples.refunds {
        client.post::<RefundView>(&["v1", "refunds"], &refund.body()).await?;
    }
    let progress = progress_bar(samples.refunds.len());
    let watched = tokio::time::timeout(ONCE_MAX, watch(&client, samples, &progress)).await;
    progress.finish_and_clear();
    let summary = Summary {
        elapsed_ms: u64::try_from(clock.boottime().saturating_since(started).as_millis()).unwrap_or(u64::MAX),
        ..summarize(&client, samples, mock).await?
    };
    if args.json {
        print_json(&summary)?;
    } else {
        print(&summary_text(&summary))?;
    }
    watched.map_err(|_| {
        let seconds = ONCE_MAX.as_secs();
        Failure::failed(format!("{} samples had not come to rest after {seconds} s", summary.refunds.pending))
    })?
}

/// Says each move until every sample is at rest.
async fn watch(client: &Client, samples: &Samples, progress: &ProgressBar) -> Result<(), Failure> {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let page = sample_page(client, samples).await?;
        for refund in &page {
            if seen.insert(refund.intent_id.clone(), refund.state.clone()).as_ref() == Some(&refund.state) {
                continue;
            }
            let about = samples.refunds.iter().find(|sample| sample.intent_id == refund.intent_id);
            let about = about.map_or("", |sample| sample.about.as_str());
            let because = refund.state_reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            let line = format!(
                "{:<18} {:>8} {}  {}{because} - {about}",
                refund.intent_id, refund.amount, refund.currency, refund.state
            );
            progress.suspend(|| say(&line));
        }
        let resting = page.iter().filter(|refund| at_rest(refund)).count();
        progress.set_position(u64::try_from(resting).unwrap_or(u64::MAX));
        if resting == samples.refunds.len() {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The samples of this run, oldest first.
async fn sample_page(client: &Client, samples: &Samples) -> Result<Vec<RefundView>, Failure> {
    let query = [("limit", "500".to_owned()), ("psp", PSP.to_owned())];
    let page = client.get::<RefundsView>(&["v1", "refunds"], &query).await?.body;
    let ours = |refund: &RefundView| samples.refunds.iter().any(|sample| sample.intent_id == refund.intent_id);
    Ok(page.refunds.into_iter().rev().filter(ours).collect())
}

fn at_rest(refund: &RefundView) -> bool {
    matches!(refund.state.as_str(), "succeeded" | "failed" | "canceled" | "reversed" | "needs_review" | "processing")
}

const WORTH_TRYING: [&str; 8] = [
    "refund list",
    "refund show slow-call",
    "refund show lost-answer",
    "refund show other-amount",
    "refund replay low-balance --reason \"curious\"",
    "payment show shop-1001",
    "ledger balances",
    "psp pause mock --reason \"trying it\"",
];

fn where_to_look(address: SocketAddr) {
    say("\nThe server goes on until Ctrl-C. In a second terminal, try:");
    let server = if address.port() == 8080 { String::new() } else { format!(" --server http://{address}") };
    for command in WORTH_TRYING {
        say(&format!("  orchestrator {command}{server}"));
    }
}

/// A bar on a terminal, nothing elsewhere.
fn progress_bar(length: usize) -> ProgressBar {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} at rest, {elapsed}");
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::Parser;

    /// Reads a command as the program would; a pair of quotes holds one argument.
    fn check(command: &str) {
        let arguments = command.split('"').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        let arguments: Vec<String> = std::iter::once("orchestrator".to_owned()).chain(arguments).collect();
        Cli::try_parse_from(&arguments).unwrap_or_else(|error| panic!("{command}: {error}"));
        let samples = Samples::read("").unwrap();
        for pair in arguments.windows(2) {
            if let ("show" | "replay" | "--payment-id", name) = (pair[0].as_str(), pair[1].as_str()) {
                assert!(samples.has(name), "{command}: no sample is called {name}");
            }
        }
    }

    #[test]
    fn commands_to_try_name_samples_that_are_there() {
        let readme = include_str!("../../../README.md");
        let told: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("cargo run --release -- ")).collect();
        assert!(told.len() >= 4, "{told:?}");
        for command in told.into_iter().chain(WORTH_TRYING) {
            check(command);
        }
    }
}
