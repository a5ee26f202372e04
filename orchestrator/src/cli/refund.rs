//! `orchestrator refund submit|show|list|cancel|replay`.

use super::ServerArgs;
use super::client::Client;
use super::exit::Failure;
use super::output::{print, print_json, say};
use super::story_text::story_text;
use super::table::{Align, table, time};
use crate::api::story::StoryView;
use crate::api::views::{RefundView, RefundsView};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub(crate) enum RefundVerb {
    /// Ask for a refund. Sending the same one again is safe.
    Submit(SubmitArgs),
    /// Tell one refund's whole story, found by any id: intent, PSP refund, payment, PSP payment, merchant reference.
    Show(ShowArgs),
    /// List refunds, newest first.
    List(ListArgs),
    /// Call a refund off, if nothing was sent yet.
    Cancel(WishArgs),
    /// Have a refund looked at now; it is looked up before anything is sent.
    Replay(WishArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how much").required(true).args(["amount", "amount_minor"]))]
pub(crate) struct SubmitArgs {
    /// The caller's name for this refund; it is refunded at most once.
    #[arg(long, value_name = "ID")]
    intent_id: String,
    #[arg(long, value_name = "ID")]
    payment_id: String,
    /// Decimal amount, such as 12.50.
    #[arg(long, allow_hyphen_values = true, value_name = "DECIMAL")]
    amount: Option<String>,
    /// The amount in minor units instead.
    #[arg(long, allow_hyphen_values = true, value_name = "INTEGER")]
    amount_minor: Option<String>,
    /// The payment's currency.
    #[arg(long, value_name = "CODE")]
    currency: String,
    #[arg(long, value_name = "TEXT")]
    merchant_reference: Option<String>,
    /// Why the customer gets the money back.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[arg(value_name = "ANY_ID")]
    id: String,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// States, with commas; `pending` is all that is not final and not parked.
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    #[arg(long, value_name = "NAME")]
    psp: Option<String>,
    #[arg(long, value_name = "ID")]
    payment_id: Option<String>,
    #[arg(long, value_name = "TEXT")]
    merchant_reference: Option<String>,
    /// A date or an RFC 3339 time.
    #[arg(long, value_name = "TIME")]
    created_from: Option<String>,
    #[arg(long, value_name = "TIME")]
    created_before: Option<String>,
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    /// Where the page before ended.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WishArgs {
    #[arg(value_name = "INTENT_ID")]
    id: String,
    /// Why; it goes on record.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) async fn run(verb: RefundVerb) -> Result<(), Failure> {
    match verb {
        RefundVerb::Submit(args) => submit(args).await,
        RefundVerb::Show(args) => show(args).await,
        RefundVerb::List(args) => list(args).await,
        RefundVerb::Cancel(args) => wish("cancel", args).await,
        RefundVerb::Replay(args) => wish("replay", args).await,
    }
}

async fn submit(args: SubmitArgs) -> Result<(), Failure> {
    let body = json!({
        "intent_id": args.intent_id,
        "payment_id": args.payment_id,
        "amount": args.amount,
        "amount_minor": args.amount_minor,
        "currency": args.currency,
        "merchant_reference": args.merchant_reference,
        "reason": args.reason,
    });
    let answer = Client::new(&args.server)?.post::<RefundView>(&["v1", "refunds"], &body).await?;
    say(if answer.status == 202 { "recorded" } else { "on record already, with the same body" });
    print_refunds(&[answer.body], args.json, |refunds| print_json(&refunds[0]))
}

async fn show(args: ShowArgs) -> Result<(), Failure> {
    let client = Client::new(&args.server)?;
    let body = client.get::<Value>(&["v1", "refunds", &args.id], &[]).await?.body;
    if args.json {
        return print_json(&body);
    }
    let unreadable = |error: serde_json::Error| {
        Failure::failed(format!("the server told a story this version can not read: {error}"))
    };
    if body.get("refunds").is_some() {
        let several: RefundsView = serde_json::from_value(body).map_err(unreadable)?;
        say(&format!("{} refunds have this id: show one of them by its intent", several.refunds.len()));
        return print(&refunds_table(&several.refunds));
    }
    let story: StoryView = serde_json::from_value(body).map_err(unreadable)?;
    print(&story_text(&story))
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let given = [
        ("state", args.state),
        ("psp", args.psp),
        ("payment_id", args.payment_id),
        ("merchant_reference", args.merchant_reference),
        ("created_from", args.created_from),
        ("created_before", args.created_before),
        ("limit", Some(args.limit.to_string())),
        ("cursor", args.cursor),
    ];
    let query: Vec<_> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let page = Client::new(&args.server)?.get::<RefundsView>(&["v1", "refunds"], &query).await?.body;
    if let Some(cursor) = page.next_cursor.as_ref().filter(|_| !args.json) {
        say(&format!("there are more: add --cursor {cursor}"));
    }
    print_refunds(&page.refunds, args.json, |_| print_json(&page))
}

async fn wish(what: &str, args: WishArgs) -> Result<(), Failure> {
    let client = Client::new(&args.server)?;
    let path = ["v1", "refunds", &args.id, what];
    let answer = client.post::<Value>(&path, &json!({ "reason": args.reason })).await?;
    let done = answer.status == 200;
    say(&match (what, done) {
        ("cancel", true) => format!("{} is canceled", args.id),
        ("cancel", false) => format!(
            "cancel of {} is requested; its holder decides: see `orchestrator refund show {}`",
            args.id, args.id
        ),
        _ => format!("{} is looked at now: see `orchestrator refund show {}`", args.id, args.id),
    });
    if args.json { print_json(&answer.body) } else { Ok(()) }
}

fn print_refunds(
    refunds: &[RefundView],
    json: bool,
    as_json: impl FnOnce(&[RefundView]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if json { as_json(refunds) } else { print(&refunds_table(refunds)) }
}

fn refunds_table(refunds: &[RefundView]) -> String {
    use Align::{Left, Right};
    let columns = [
        ("INTENT", Left),
        ("AMOUNT", Right),
        ("CUR", Left),
        ("STATUS", Left),
        ("STATE", Left),
        ("PSP", Left),
        ("PAYMENT", Left),
        ("CREATED (UTC)", Left),
        ("NEXT (UTC)", Left),
    ];
    let row = |refund: &RefundView| {
        let next = refund.next_action_at.map(|at| format!("{} {}", refund.next_action, time(at)));
        vec![
            refund.intent_id.clone(),
            refund.amount.clone(),
            refund.currency.to_string(),
            refund.status.clone(),
            refund.state.clone(),
            refund.psp.clone(),
            refund.payment_id.clone(),
            time(refund.created_at),
            next.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    table(&columns, &refunds.iter().map(row).collect::<Vec<_>>())
}
