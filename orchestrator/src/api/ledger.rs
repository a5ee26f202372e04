//! `GET /v1/ledger/balances`.

use super::ApiState;
use super::problem::Problem;
use crate::store::read::AccountBalance;
use axum::Json;
use axum::extract::State;
use jobs::money::{Currency, Money};
use serde::{Deserialize, Serialize};

/// The sums over one account's transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceView {
    pub account: String,
    pub currency: Currency,
    pub debit: String,
    pub debit_minor: String,
    pub credit: String,
    pub credit_minor: String,
    /// Debit minus credit.
    pub balance: String,
    pub balance_minor: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalancesView {
    pub balances: Vec<BalanceView>,
}

impl From<&AccountBalance> for BalanceView {
    fn from(balance: &AccountBalance) -> Self {
        let currency = balance.currency;
        let decimal = |minor: i64| Money { minor, currency }.to_decimal();
        let difference = balance.debit_minor.saturating_sub(balance.credit_minor);
        Self {
            account: balance.account.clone(),
            currency,
            debit: decimal(balance.debit_minor),
            debit_minor: balance.debit_minor.to_string(),
            credit: decimal(balance.credit_minor),
            credit_minor: balance.credit_minor.to_string(),
            balance: decimal(difference),
            balance_minor: difference.to_string(),
        }
    }
}

pub async fn balances(State(state): State<ApiState>) -> Result<Json<BalancesView>, Problem> {
    let balances = state.store.balances().await?;
    Ok(Json(BalancesView { balances: balances.iter().map(BalanceView::from).collect() }))
}
