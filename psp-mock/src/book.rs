//! The book as tests and drills read it: plain records, owned, in pages.

use crate::server::Shared;
use crate::state::State;
use crate::state::payments::NewPayment;
use crate::wire::form::Metadata;
use crate::wire::{ApiError, Currency};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Records per page at most.
pub(crate) const PAGE_MOST: usize = 10_000;

/// One refund as it is in the book, whatever its caller was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BookedRefund {
    pub id: String,
    pub payment_intent: Option<String>,
    pub charge: Option<String>,
    pub account: String,
    pub amount: i64,
    pub currency: String,
    pub status: String,
    pub pending_reason: Option<String>,
    pub failure_reason: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub executed_at_ms: i64,
    /// The idempotency key it was created under.
    pub key: Option<String>,
}

/// What to read of the book.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BookQuery {
    /// Only refunds with this reference.
    pub intent: Option<String>,
    /// Only refunds of the payment with this id.
    pub payment: Option<String>,
    /// Position to begin at: `next` of the page before.
    pub from: usize,
    /// At most so many; 1,000 when absent, 10,000 at most.
    pub limit: Option<usize>,
}

/// One page of the book, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BookPage {
    pub refunds: Vec<BookedRefund>,
    /// Where the next page begins; absent on the last.
    pub next: Option<usize>,
}

/// A payment to put into the book with ids of the caller's choice. It is paid; missing ids are made up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payment {
    /// Payment intent id, `pi_...`.
    pub id: Option<String>,
    /// Charge id, `ch_...`.
    pub charge: Option<String>,
    pub amount: i64,
    pub currency: String,
    /// The default account when absent.
    pub account: Option<String>,
}

/// The ids of a payment that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddedPayment {
    pub id: String,
    pub charge: String,
}

pub(crate) fn read(state: &State, query: &BookQuery) -> BookPage {
    let limit = query.limit.unwrap_or(1_000).clamp(1, PAGE_MOST);
    let of_payment = query.payment.as_deref().map(|id| state.payment_named(id));
    let payment_fits = |at: u32| of_payment.is_none_or(|payment| payment == Some(state.refunds[at].payment));
    let mut positions: Vec<u32> = match &query.intent {
        Some(intent) => state
            .tallies
            .refunds_of(intent)
            .iter()
            .copied()
            .filter(|at| payment_fits(*at))
            .skip(query.from)
            .take(limit + 1)
            .collect(),
        None => {
            (0..state.refunds.len() as u32).filter(|at| payment_fits(*at)).skip(query.from).take(limit + 1).collect()
        }
    };
    let next = (positions.len() > limit).then_some(query.from + limit);
    positions.truncate(limit);
    BookPage { refunds: positions.into_iter().map(|at| booked(state, at)).collect(), next }
}

fn booked(state: &State, at: u32) -> BookedRefund {
    let refund = &state.refunds[at];
    let payment = &state.payments[refund.payment];
    let text = |id: &Option<crate::state::Id>| id.as_ref().map(|id| id.to_string());
    BookedRefund {
        id: refund.id.to_string(),
        payment_intent: text(&payment.intent),
        charge: text(&payment.charge),
        account: payment.account.to_string(),
        amount: refund.amount,
        currency: refund.currency.as_str().to_owned(),
        status: refund.status.wire().to_owned(),
        pending_reason: refund.pending_reason.map(str::to_owned),
        failure_reason: refund.failure_reason.as_deref().map(str::to_owned),
        metadata: refund.metadata.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        executed_at_ms: refund.created_ms,
        key: refund.key.as_deref().map(str::to_owned),
    }
}

/// Adds payments in the order given, up to the first that cannot be added.
pub(crate) fn add_payments(shared: &Shared, payments: Vec<Payment>) -> Result<Vec<AddedPayment>, ApiError> {
    let (mut state, now_ms) = shared.now();
    let mut added = Vec::with_capacity(payments.len());
    for payment in payments {
        if payment.amount < 1 {
            return Err(ApiError::invalid("Invalid positive integer").on("amount"));
        }
        let currency = Currency::parse(&payment.currency)?;
        let id = payment.id.unwrap_or_else(|| state.ids.next("pi"));
        let charge = payment.charge.unwrap_or_else(|| state.ids.next("ch"));
        let account = payment.account.map_or_else(|| shared.default_account(), |account| account.into());
        let new = NewPayment {
            intent: Some(id.as_str().into()),
            charge: Some(charge.as_str().into()),
            account,
            amount: payment.amount,
            currency,
            metadata: Metadata::default(),
            description: None,
        };
        state.add_payment(new, now_ms)?;
        added.push(AddedPayment { id, charge });
    }
    Ok(added)
}
