//! The command line: one file per command.
//!
//! Data goes to stdout and talk to stderr. Exit codes: 0 done, 1 failed, 2 usage or bad input, 3 not found, 4 refused. A reader that closes
//! the pipe early ends the command quietly. `dev`, `serve`, `migrate` and `doctor` work on their own; the others ask a server.

mod client;
mod dev;
mod dev_summary;
mod doctor;
mod exit;
mod ledger;
mod migrate;
mod output;
mod payment;
mod payment_csv;
mod psp;
mod refund;
mod samples;
mod serve;
mod story_text;
mod table;

pub use exit::{Exit, Failure};
pub use payment_csv::{BadRow, CsvPayments, read_payments};
pub use story_text::story_text;

use clap::{Args, Parser, Subcommand};
use std::process::ExitCode;

/// Drives refunds through payment service providers and never moves money twice.
#[derive(Debug, Parser)]
#[command(name = "orchestrator", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Everything in one process: SQLite, a mock PSP and samples to look at.
    Dev(dev::DevArgs),
    /// Run one replica.
    Serve(serve::ServeArgs),
    /// Bring the database's schema up to date.
    Migrate(migrate::MigrateArgs),
    /// Check what a replica needs; exit 1 if something is missing.
    Doctor(doctor::DoctorArgs),
    /// Submit, find and act on refunds.
    #[command(subcommand)]
    Refund(refund::RefundVerb),
    /// Payments that refunds take from.
    #[command(subcommand)]
    Payment(payment::PaymentVerb),
    /// The ledger.
    #[command(subcommand)]
    Ledger(ledger::LedgerVerb),
    /// Payment service providers.
    #[command(subcommand)]
    Psp(psp::PspVerb),
}

/// Which server to ask.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// Base address of the server.
    #[arg(long, env = "ORCHESTRATOR_SERVER", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    server: String,
    /// Access token to show.
    #[arg(long, env = "ORCHESTRATOR_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<secrecy::SecretString>,
}

/// Runs the command named by the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    crate::psp::install_tls_provider();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            drop(error.print());
            return ExitCode::from(if error.use_stderr() { Exit::Usage } else { Exit::Done }.code());
        }
    };
    let mut builder = match &cli.verb {
        Verb::Dev(_) | Verb::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let result = match builder.enable_all().build() {
        Ok(runtime) => runtime.block_on(run(cli.verb)),
        Err(error) => Err(Failure::failed(format!("the runtime did not start: {error}"))),
    };
    match result {
        Ok(()) => ExitCode::from(Exit::Done.code()),
        Err(failure) => {
            if let Some(message) = &failure.message {
                output::say(&format!("error: {message}"));
            }
            ExitCode::from(failure.exit.code())
        }
    }
}

async fn run(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Dev(args) => dev::run(args).await,
        Verb::Serve(args) => serve::run(args).await,
        Verb::Migrate(args) => migrate::run(args).await,
        Verb::Doctor(args) => doctor::run(args).await,
        Verb::Refund(verb) => refund::run(verb).await,
        Verb::Payment(verb) => payment::run(verb).await,
        Verb::Ledger(verb) => ledger::run(verb).await,
        Verb::Psp(verb) => psp::run(verb).await,
    }
}

/// What the process was started with.
pub(crate) fn environment_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
