//! `orchestrator payment import FILE.csv|show`.
//!
//! An import sends nothing unless every line of the file is good. It may be run again: payments on record with the same fields are skipped.

use super::ServerArgs;
use super::client::Client;
use super::exit::Failure;
use super::output::{print, print_json, say};
use super::payment_csv::read_payments;
use crate::api::payments::ImportedView;
use crate::api::psps::PspsView;
use crate::api::views::PaymentView;
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;

/// Payments in one request; well below the server's limits.
const CHUNK: usize = 500;
/// About a million payments.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Bad lines told one by one.
const BAD_ROWS_SHOWN: usize = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum PaymentVerb {
    /// Import captured payments from a CSV file; nothing is imported if a line is bad.
    Import(ImportArgs),
    /// Show one payment and what can still be refunded.
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Headings: payment_id, psp, psp_payment_ref, currency, amount (or amount_minor) [, psp_account, merchant_reference, charged_back_minor].
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[arg(value_name = "PAYMENT_ID")]
    id: String,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) async fn run(verb: PaymentVerb) -> Result<(), Failure> {
    match verb {
        PaymentVerb::Import(args) => import(args).await,
        PaymentVerb::Show(args) => show(args).await,
    }
}

#[derive(Debug, Deserialize)]
struct Results {
    results: Vec<ImportedView>,
}

async fn import(args: ImportArgs) -> Result<(), Failure> {
    let text = read_file(&args.file)?;
    let client = Client::new(&args.server)?;
    let psps = client.get::<PspsView>(&["v1", "psps"], &[]).await?.body.psps;
    let known: Vec<String> = psps.into_iter().map(|psp| psp.psp).collect();
    let read = read_payments(&text, &known);
    if !read.bad.is_empty() {
        for row in read.bad.iter().take(BAD_ROWS_SHOWN) {
            say(&format!("line {}: {}", row.line, row.reason));
        }
        let file = args.file.display();
        return Err(Failure::usage(format!(
            "{} bad lines in {file}: nothing was imported; repair them and run it again",
            read.bad.len()
        )));
    }
    let (mut inserted, mut same) = (0_usize, 0_usize);
    for chunk in read.payments.chunks(CHUNK) {
        let answer = client.post::<Results>(&["v1", "payments"], &chunk).await;
        let results = answer.map_err(|failure| partly(failure, inserted + same))?.body.results;
        let new = results.iter().filter(|result| result.result == "inserted").count();
        inserted += new;
        same += results.len() - new;
    }
    say(&format!("{inserted} payments imported, {same} were on record already"));
    if args.json { print_json(&json!({ "inserted": inserted, "same": same })) } else { Ok(()) }
}

/// A failure in the middle: what came before is on record.
fn partly(failure: Failure, done: usize) -> Failure {
    let message = failure.message.unwrap_or_default();
    Failure::new(failure.exit, format!("{message}; {done} payments before are on record, running it again skips them"))
}

fn read_file(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let named = path.display();
    let unreadable = |error: std::io::Error| Failure::usage(format!("{named} can not be read: {error}"));
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{named} has {length} bytes: split it below {FILE_BYTES_MAX}")));
    }
    std::fs::read(path).map_err(unreadable)
}

async fn show(args: ShowArgs) -> Result<(), Failure> {
    let view = Client::new(&args.server)?.get::<PaymentView>(&["v1", "payments", &args.id], &[]).await?.body;
    if args.json {
        return print_json(&view);
    }
    print(&payment_text(&view))
}

fn payment_text(view: &PaymentView) -> String {
    let currency = view.currency;
    let width = [&view.captured, &view.charged_back, &view.refunded, &view.reserved, &view.refundable]
        .into_iter()
        .map(String::len)
        .max()
        .unwrap_or(0);
    let reference =
        view.merchant_reference.as_ref().map(|text| format!(", merchant reference {text}")).unwrap_or_default();
    let mut text = format!(
        "Payment {}\n  PSP           {}, account {}, payment {}{reference}\n",
        view.payment_id, view.psp, view.psp_account, view.psp_payment_ref
    );
    for (name, amount) in [
        ("captured", &view.captured),
        ("charged back", &view.charged_back),
        ("refunded", &view.refunded),
        ("reserved", &view.reserved),
        ("refundable", &view.refundable),
    ] {
        text.push_str(&format!("  {name:<12}  {amount:>width$} {currency}\n"));
    }
    text
}
