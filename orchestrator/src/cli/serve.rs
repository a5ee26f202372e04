//! `orchestrator serve --config FILE [--check]`: one replica, until SIGTERM or SIGINT.

use super::environment_variable;
use super::exit::Failure;
use super::output::say;
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::node::{self, Node};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The configuration, a TOML file; ops/samples/orchestrator.toml has every key.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Only check the file; starts nothing.
    #[arg(long)]
    check: bool,
}

/// Reads the file, or says everything that is wrong with it.
pub(super) fn read_config(path: &Path) -> Result<Config, Failure> {
    Config::read(path, &environment_variable).map_err(|error| Failure::usage(error.to_string()))
}

pub(crate) async fn run(args: ServeArgs) -> Result<(), Failure> {
    let config = read_config(&args.config)?;
    if args.check {
        let psps: Vec<_> = config.psps.iter().map(|psp| psp.name.as_str()).collect();
        let file = args.config.display();
        say(&format!(
            "{file} is good: environment {}, PSPs {}, API on {}",
            config.environment,
            psps.join(", "),
            config.api.listen
        ));
        return Ok(());
    }
    node::log_to_stderr(&config.log);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let failed = |error: node::OpenError| Failure::failed(error.to_string());
    let parts = node::open_parts(&config, clock).await.map_err(failed)?;
    let listener = listen(config.api.listen).await?;
    let stop = stop_signal()?;
    let address = listener.local_addr().map_err(|error| Failure::failed(error.to_string()))?;
    say(&format!("listening on http://{address}"));
    Node::new(parts).run(listener, stop).await.map_err(|error| Failure::failed(error.to_string()))
}

pub(super) async fn listen(address: std::net::SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::failed(format!(
            "can not listen on {address}: {error}; choose another address or end what listens there"
        ))
    })
}

/// Completes on SIGTERM or SIGINT.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("signals can not be received: {error}"));
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate()).map_err(failed)?, signal(SignalKind::interrupt()).map_err(failed)?);
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
