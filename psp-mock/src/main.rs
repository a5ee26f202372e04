//! The mock as a process: options in, one JSON line with the address out, then it serves until it is told to stop.

use clap::{Parser, ValueEnum};
use psp_mock::{Config, Executes, FaultRate, LatencyOn, Mock, Webhook, parse_duration, parse_fault_rate};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A mock payment service provider with Stripe's wire format.
#[derive(Debug, Parser)]
#[command(name = "psp-mock", version)]
struct Options {
    /// Address to listen on; port 0 picks a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// How long a call takes, such as 45s.
    #[arg(long, default_value = "0s", value_parser = parse_duration, value_name = "D")]
    latency: Duration,
    /// Which calls the latency slows down.
    #[arg(long, value_enum, default_value_t = SlowCalls::Creates)]
    latency_on: SlowCalls,
    /// Whether a slow call executes on arrival or just before its answer.
    #[arg(long, value_enum, default_value_t = Moment::First)]
    latency_executes: Moment,
    /// Source of all ids and of faults drawn by chance.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How long idempotency keys are remembered.
    #[arg(long, default_value = "24h", value_parser = parse_duration, value_name = "D")]
    key_lifetime: Duration,
    /// Where events are sent; needs --webhook-secret.
    #[arg(long, requires = "webhook_secret", value_name = "URL")]
    webhook_url: Option<String>,
    #[arg(
        long,
        requires = "webhook_url",
        env = "PSP_MOCK_WEBHOOK_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    webhook_secret: Option<String>,
    /// A fault by chance, such as answer_lost=0.01 or latency:45s=0.05; may be repeated.
    #[arg(long = "fault-rate", value_parser = parse_fault_rate, value_name = "KIND[:D]=CHANCE")]
    fault_rates: Vec<FaultRate>,
    /// An API key and the account it acts on, KEY=ACCOUNT; may be repeated.
    #[arg(long = "account", value_parser = parse_account, value_name = "KEY=ACCOUNT")]
    accounts: Vec<(String, String)>,
    /// The metadata key that carries the caller's reference.
    #[arg(long, default_value = "intent_id", value_name = "NAME")]
    reference_key: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SlowCalls {
    Creates,
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Moment {
    First,
    Last,
}

fn parse_account(text: &str) -> Result<(String, String), String> {
    let (key, account) = text.split_once('=').ok_or_else(|| format!("`{text}` is not KEY=ACCOUNT"))?;
    Ok((key.to_owned(), account.to_owned()))
}

impl Options {
    fn into_config(self) -> Config {
        let latency_on = match self.latency_on {
            SlowCalls::Creates => LatencyOn::Creates,
            SlowCalls::All => LatencyOn::All,
        };
        let latency_executes = match self.latency_executes {
            Moment::First => Executes::First,
            Moment::Last => Executes::Last,
        };
        Config {
            listen: self.listen,
            seed: self.seed,
            latency: self.latency,
            latency_on,
            latency_executes,
            key_lifetime: self.key_lifetime,
            reference_key: self.reference_key,
            webhook: self.webhook_url.zip(self.webhook_secret).map(|(url, secret)| Webhook { url, secret }),
            fault_rates: self.fault_rates,
            accounts: self.accounts,
            ..Config::default()
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    match run(options.into_config()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "psp-mock cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn run(config: Config) -> io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mock = Mock::start(config).await?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", serde_json::json!({ "listening": mock.url() }))?;
    stdout.flush()?;
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    mock.stop().await;
    Ok(())
}
