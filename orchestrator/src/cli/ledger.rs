//! `orchestrator ledger balances`.

use super::ServerArgs;
use super::client::Client;
use super::exit::Failure;
use super::output::{print, print_json};
use super::table::{Align, table};
use crate::api::ledger::{BalanceView, BalancesView};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerVerb {
    /// Sums per account.
    Balances(BalancesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BalancesArgs {
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) async fn run(LedgerVerb::Balances(args): LedgerVerb) -> Result<(), Failure> {
    let view = Client::new(&args.server)?.get::<BalancesView>(&["v1", "ledger", "balances"], &[]).await?.body;
    if args.json {
        return print_json(&view);
    }
    let columns = [
        ("ACCOUNT", Align::Left),
        ("DEBIT", Align::Right),
        ("CREDIT", Align::Right),
        ("BALANCE", Align::Right),
        ("CUR", Align::Left),
    ];
    let row = |balance: &BalanceView| {
        let BalanceView { account, debit, credit, balance: difference, currency, .. } = balance.clone();
        vec![account, debit, credit, difference, currency.to_string()]
    };
    print(&table(&columns, &view.balances.iter().map(row).collect::<Vec<_>>()))
}
