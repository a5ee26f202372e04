//! Thousands of refunds in flight at once in one process, against a provider that takes 45 seconds.

use crate::mock::MockProcess;
use crate::node::{self, Database, Node};
use crate::{Failure, cpu};
use orchestrator::store::Store;
use serde::Serialize;
use sqlx::{PgPool, Row};
use std::io::Write;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Refunds in flight at once.
    #[arg(long, default_value_t = 10_000)]
    count: usize,
    #[arg(long, default_value_t = 45)]
    latency_s: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    refunds: usize,
    most_in_flight: i64,
    posted: i64,
    /// From its own submit to its own post.
    slowest_s: f64,
    within_60_s: i64,
    /// Attempts beyond one for each refund: a hold that was lost shows here.
    attempts_beyond_one: i64,
    late_answers: i64,
    /// The mock's own count.
    psp: serde_json::Value,
    /// Resident memory gained while all calls were open, divided by them.
    kib_per_call_in_flight: f64,
    peak_rss_mib: u64,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let database = Database::start().await?;
    let mock = MockProcess::start(Duration::from_secs(options.latency_s)).await?;
    let provider = node::provider(&mock)?;
    let pool = PgPool::connect(&database.url).await?;
    node::add_payments(&database, &mock, "slow", options.count).await?;
    let intents = node::intents(provider.as_ref(), "slow", options.count)?;
    let node = Node::start(&database, provider, options.count).await?;
    let own = std::process::id();
    let before_kib = cpu::memory_kib(own, "VmRSS");
    for part in intents.chunks(500) {
        let _results = database.store.submit(part).await?;
        node.wake.nudge();
    }
    drop(intents);
    let mut most_in_flight = 0;
    let mut in_flight_kib = before_kib;
    let mut waited = Duration::ZERO;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        waited += Duration::from_millis(500);
        let row = sqlx::query(
            "SELECT (SELECT count(*) FROM refund_intents WHERE holder_session IS NOT NULL), (SELECT count(*) FROM ledger_transfers)",
        )
        .fetch_one(&pool)
        .await?;
        let (in_flight, posted): (i64, i64) = (row.get(0), row.get(1));
        if in_flight >= most_in_flight && posted == 0 {
            most_in_flight = in_flight;
            in_flight_kib = cpu::memory_kib(own, "VmRSS");
        }
        if posted == i64::try_from(options.count)? || waited > Duration::from_secs(options.latency_s + 120) {
            break;
        }
    }
    let row = sqlx::query(
        "SELECT count(*), coalesce(max(extract(epoch FROM t.created_at - i.created_at)), 0)::float8,
                count(*) FILTER (WHERE t.created_at - i.created_at <= interval '60 s'),
                (SELECT count(*) FROM refund_attempts) - (SELECT count(*) FROM refund_intents),
                (SELECT count(*) FROM intent_inbox)
         FROM refund_intents i JOIN ledger_transfers t USING (intent_id)",
    )
    .fetch_one(&pool)
    .await?;
    let report = Report {
        refunds: options.count,
        most_in_flight,
        posted: row.get(0),
        slowest_s: row.get(1),
        within_60_s: row.get(2),
        attempts_beyond_one: row.get(3),
        late_answers: row.get(4),
        psp: mock.totals().await?,
        kib_per_call_in_flight: in_flight_kib.saturating_sub(before_kib) as f64 / options.count as f64,
        peak_rss_mib: cpu::memory_kib(own, "VmHWM") / 1_024,
    };
    node.stop().await?;
    mock.stop().await?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&report)?)?;
    Ok(())
}
