//! Refunds per second from first submit to last post, beside one-row transactions and arrays on the same server in the same run.

use crate::mock::MockProcess;
use crate::node::{self, Database, Node};
use crate::{Failure, bare, bound, cpu};
use orchestrator::psp::Provider;
use orchestrator::store::Store;
use orchestrator::store::submit::NewIntent;
use serde::Serialize;
use sqlx::{PgPool, Row};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Refunds in the measured run.
    #[arg(long, default_value_t = 40_000)]
    count: usize,
    /// How long each create takes at the provider, in milliseconds or as 50ms.
    #[arg(long, default_value = "0", value_parser = milliseconds)]
    psp_latency: Duration,
    /// Calls open at once.
    #[arg(long, default_value_t = 1_000)]
    in_flight: usize,
    /// Leave the yardsticks and the HTTP run out.
    #[arg(long)]
    only_orchestrator: bool,
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let digits = text.strip_suffix("ms").unwrap_or(text);
    digits
        .parse()
        .map(Duration::from_millis)
        .map_err(|_| format!("{text:?} is not a number of milliseconds such as 50ms"))
}

#[derive(Debug, Default, Serialize)]
struct Report {
    refunds: usize,
    refunds_per_second: f64,
    http: Option<HttpReport>,
    bare_sql_per_second: f64,
    ratio: f64,
    batched_bound_per_second: f64,
    share_of_bound: f64,
    commits_per_refund: f64,
    cpu_share: CpuShare,
    cpu_ms_per_refund: f64,
    peak_rss_mib: u64,
    /// With a latency: the share of in-flight / latency that was reached.
    share_of_in_flight_limit: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HttpReport {
    refunds_per_second: f64,
    client_cpu_ms: u64,
    orchestrator_cpu_ms: u64,
}

#[derive(Debug, Default, Serialize)]
struct CpuShare {
    orchestrator: f64,
    postgres: f64,
    mock: f64,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let database = Database::start().await?;
    let mock = MockProcess::start(options.psp_latency).await?;
    let provider = node::provider(&mock)?;
    let pool = PgPool::connect(&database.url).await?;
    let mut report = Report { refunds: options.count, ..Report::default() };

    let node = Node::start(&database, provider.clone(), options.in_flight).await?;
    // A warm-up of its own fills caches and pools.
    in_process(&database, &mock, &provider, &node, &pool, "warm", 2_000, None).await?;
    in_process(&database, &mock, &provider, &node, &pool, "main", options.count, Some(&mut report)).await?;
    if options.psp_latency.is_zero() && !options.only_orchestrator {
        report.http = Some(crate::http::measure(&database, &mock, &node, &pool, options.count / 2).await?);
    }
    node.stop().await?;
    if options.psp_latency.is_zero() && !options.only_orchestrator {
        eprintln!("yardsticks: arrays of 500, then one-row transactions");
        report.batched_bound_per_second = bound::measure(&database, &mock, &provider, options.count).await?;
        report.share_of_bound = report.refunds_per_second / report.batched_bound_per_second;
        report.bare_sql_per_second = bare::best(&database.url, options.count / 4).await?;
        report.ratio = report.refunds_per_second / report.bare_sql_per_second;
    }
    if !options.psp_latency.is_zero() {
        let limit = options.in_flight as f64 / options.psp_latency.as_secs_f64();
        report.share_of_in_flight_limit = Some(report.refunds_per_second / limit);
    }
    mock.stop().await?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&report)?)?;
    Ok(())
}

/// Commits of the server so far.
async fn commits(pool: &PgPool) -> Result<i64, Failure> {
    Ok(sqlx::query(
        "SELECT pg_stat_clear_snapshot(), xact_commit FROM pg_stat_database WHERE datname = current_database()",
    )
    .fetch_one(pool)
    .await?
    .get(1))
}

#[expect(clippy::too_many_arguments, reason = "the parts of one run")]
async fn in_process(
    database: &Database,
    mock: &MockProcess,
    provider: &Arc<dyn Provider>,
    node: &Node,
    pool: &PgPool,
    name: &str,
    count: usize,
    report: Option<&mut Report>,
) -> Result<(), Failure> {
    node::add_payments(database, mock, name, count).await?;
    let intents = node::intents(provider.as_ref(), name, count)?;
    let pids = [std::process::id(), database.server.pid(), mock.pid];
    let cpu_before = pids.map(cpu::tree_ms);
    let own_before = cpu::process_ms(pids[0]);
    let commits_before = commits(pool).await?;
    let submits = submit_all(database.store.clone(), node, intents).await?;
    let (rate, polls) = wait_posted(pool, name, count).await?;
    // The statistics of a backend are published after it was idle for a moment.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let commits_after = commits(pool).await?;
    if let Some(report) = report {
        report.refunds_per_second = rate;
        let ours = commits_after - commits_before - i64::try_from(submits + polls)?;
        report.commits_per_refund = ours as f64 / count as f64;
        let own = (cpu::process_ms(pids[0]) - own_before) as f64;
        let postgres = (cpu::tree_ms(pids[1]) - cpu_before[1]) as f64;
        let psp = (cpu::tree_ms(pids[2]) - cpu_before[2]) as f64;
        let total = own + postgres + psp;
        report.cpu_share = CpuShare { orchestrator: own / total, postgres: postgres / total, mock: psp / total };
        report.cpu_ms_per_refund = total / count as f64;
        report.peak_rss_mib = cpu::memory_kib(pids[0], "VmHWM") / 1_024;
    }
    Ok(())
}

/// Submits in batches as the API's queue does; returns how many transactions that were.
async fn submit_all(store: Arc<dyn Store>, node: &Node, intents: Vec<NewIntent>) -> Result<usize, Failure> {
    let mut submits = 0;
    for part in intents.chunks(500) {
        let _results = store.submit(part).await?;
        node.wake.nudge();
        submits += 1;
    }
    Ok(submits)
}

/// Waits until all are posted; the rate is by the database's clock, from the first submit to the last post.
pub(crate) async fn wait_posted(pool: &PgPool, name: &str, count: usize) -> Result<(f64, usize), Failure> {
    let wanted = i64::try_from(count)?;
    let (from, to) = (format!("{name}-"), format!("{name}."));
    let mut polls = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        polls += 1;
        let posted: i64 = sqlx::query("SELECT count(*) FROM ledger_transfers WHERE intent_id >= $1 AND intent_id < $2")
            .bind(&from)
            .bind(&to)
            .fetch_one(pool)
            .await?
            .get(0);
        if posted == wanted {
            break;
        }
    }
    let seconds: f64 = sqlx::query(
        "SELECT extract(epoch FROM (SELECT max(created_at) FROM ledger_transfers WHERE intent_id >= $1 AND intent_id < $2)
                - (SELECT min(created_at) FROM refund_intents WHERE intent_id >= $1 AND intent_id < $2))::float8",
    )
    .bind(&from)
    .bind(&to)
    .fetch_one(pool)
    .await?
    .get(0);
    Ok((count as f64 / seconds, polls + 1))
}

impl HttpReport {
    pub(crate) fn new(refunds_per_second: f64, client_cpu_ms: u64, orchestrator_cpu_ms: u64) -> Self {
        Self { refunds_per_second, client_cpu_ms, orchestrator_cpu_ms }
    }
}
