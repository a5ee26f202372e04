//! Throughput against the bare limit of the same machine, measured in one run.
//!
//! Machines are noisy, so figures are compared only within a run: every yardstick is measured on the same server, schema and
//! minute as the thing itself. Prints one JSON object on stdout; talk goes to stderr.

#![expect(clippy::float_arithmetic, reason = "rates and shares are what this program prints")]

mod bare;
mod bound;
mod client;
mod cpu;
mod http;
mod mock;
mod node;
mod refunds;
mod slow_psp;

use clap::{Parser, Subcommand};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Parser)]
#[command(about = "Throughput against the bare limit of the same machine")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Refunds per second, beside one-row transactions and arrays on the same server.
    Refunds(refunds::Options),
    /// Thousands of 45-second calls in flight at once.
    SlowPsp(slow_psp::Options),
    /// The mock provider in a process of its own (started by the others).
    #[command(hide = true)]
    Mock(mock::Options),
    /// A client that posts refunds over HTTP (started by `refunds`).
    #[command(hide = true)]
    Client(client::Options),
}

fn main() -> Result<(), Failure> {
    orchestrator::psp::install_tls_provider();
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments.bench {
            Bench::Refunds(options) => refunds::run(options).await,
            Bench::SlowPsp(options) => slow_psp::run(options).await,
            Bench::Mock(options) => mock::run(options).await,
            Bench::Client(options) => client::run(options).await,
        }
    })
}
