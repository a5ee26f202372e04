//! `orchestrator psp list|pause|resume`. A pause stops creates; lookups go on.

use super::ServerArgs;
use super::client::Client;
use super::exit::Failure;
use super::output::{print, print_json, say};
use super::table::{Align, table, time};
use crate::api::psps::{PspView, PspsView};
use clap::{Args, Subcommand};
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(crate) enum PspVerb {
    /// Configured PSPs, and whether their creates are paused.
    List(ListArgs),
    /// Stop creates; lookups go on.
    Pause(SwitchArgs),
    /// Let creates go on.
    Resume(SwitchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    #[arg(value_name = "NAME")]
    psp: String,
    /// Why; it goes on record.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) async fn run(verb: PspVerb) -> Result<(), Failure> {
    match verb {
        PspVerb::List(args) => list(args).await,
        PspVerb::Pause(args) => switch("pause", "paused: no creates, lookups go on", args).await,
        PspVerb::Resume(args) => switch("resume", "resumed", args).await,
    }
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let view = Client::new(&args.server)?.get::<PspsView>(&["v1", "psps"], &[]).await?.body;
    if args.json {
        return print_json(&view);
    }
    let columns =
        ["PSP", "ACCOUNT", "KIND", "CREATES", "SINCE (UTC)", "BY", "BECAUSE"].map(|heading| (heading, Align::Left));
    let row = |psp: &PspView| {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let psp = psp.clone();
        vec![
            psp.psp,
            psp.account,
            psp.kind,
            if psp.creates_paused { "paused" } else { "running" }.to_owned(),
            or_dash(psp.paused_at.map(time)),
            or_dash(psp.paused_by),
            or_dash(psp.paused_because),
        ]
    };
    print(&table(&columns, &view.psps.iter().map(row).collect::<Vec<_>>()))
}

async fn switch(what: &str, done: &str, args: SwitchArgs) -> Result<(), Failure> {
    let client = Client::new(&args.server)?;
    let view = client.post::<PspView>(&["v1", "psps", &args.psp, what], &json!({ "reason": args.reason })).await?.body;
    say(&format!("PSP {} is {done}", args.psp));
    if args.json { print_json(&view) } else { Ok(()) }
}
