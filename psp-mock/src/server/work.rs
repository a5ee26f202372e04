//! What a call does to the book, in two halves: `prepare` checks the parameters (a failure is not stored under the key), `run`
//! executes (a failure is).

use super::call::{Call, Route};
use crate::faults::Script;
use crate::state::State;
use crate::state::keys::Answer;
use crate::state::payments::{Face, NewPayment};
use crate::state::refunds::RefundOrder;
use crate::wire::form::Metadata;
use crate::wire::page::PageQuery;
use crate::wire::{ApiError, Currency, Form};

/// A call with its parameters checked.
#[derive(Debug)]
pub(crate) enum Work {
    CreateRefund(Box<RefundOrder>),
    CreatePayment(Face, Box<PaymentOrder>),
    /// Everything whose parameters need no check before it runs.
    Other,
}

#[derive(Debug)]
pub(crate) struct PaymentOrder {
    amount: i64,
    currency: Currency,
    metadata: Metadata,
    description: Option<Box<str>>,
    confirmed: bool,
}

impl Work {
    pub(crate) fn prepare(call: &Call) -> Result<Self, ApiError> {
        Ok(match &call.route {
            Route::RefundCreate => {
                Self::CreateRefund(Box::new(RefundOrder::parse(&call.form, &call.account, call.key_text.as_deref())?))
            }
            Route::PaymentCreate(face) => Self::CreatePayment(*face, Box::new(PaymentOrder::parse(&call.form, *face)?)),
            _ => Self::Other,
        })
    }

    pub(crate) fn run(self, state: &mut State, call: &Call, script: &Script, now_ms: i64) -> Answer {
        let done = match self {
            Self::CreateRefund(order) => return state.run_create(*order, script, now_ms),
            Self::CreatePayment(face, order) => order.run(state, call, face, now_ms),
            Self::Other => run_other(state, call, now_ms),
        };
        done.map_or_else(Answer::from, Answer::ok)
    }
}

impl PaymentOrder {
    fn parse(form: &Form, face: Face) -> Result<Self, ApiError> {
        let amount = form.integer("amount")?.ok_or_else(|| ApiError::missing_param("amount"))?;
        if amount < 1 {
            return Err(ApiError::invalid("Invalid positive integer").coded("parameter_invalid_integer").on("amount"));
        }
        let currency = Currency::parse(form.text("currency").ok_or_else(|| ApiError::missing_param("currency"))?)?;
        let mut metadata = Metadata::default();
        metadata.merge(form)?;
        let confirmed =
            face == Face::Charge || form.get("confirm") == Some("true") || form.text("payment_method").is_some();
        Ok(Self { amount, currency, metadata, description: form.text("description").map(Into::into), confirmed })
    }

    fn run(self, state: &mut State, call: &Call, face: Face, now_ms: i64) -> Result<Vec<u8>, ApiError> {
        let Self { amount, currency, metadata, description, confirmed } = self;
        let intent = (face == Face::Intent).then(|| state.ids.next("pi").into());
        let charge = confirmed.then(|| state.ids.next("ch").into());
        let account = call.account.clone();
        let at = state
            .add_payment(NewPayment { intent, charge, account, amount, currency, metadata, description }, now_ms)?;
        Ok(state.payment_json(at, face))
    }
}

fn run_other(state: &mut State, call: &Call, now_ms: i64) -> Result<Vec<u8>, ApiError> {
    let (account, form) = (&*call.account, &call.form);
    match &call.route {
        Route::PaymentConfirm(id) => {
            let at = state.find_payment(account, Face::Intent, id, "intent")?;
            state.confirm(at, now_ms);
            Ok(state.payment_json(at, Face::Intent))
        }
        Route::PaymentRead(face, id) => {
            let param = if *face == Face::Intent { "intent" } else { "id" };
            Ok(state.payment_json(state.find_payment(account, *face, id, param)?, *face))
        }
        Route::PaymentList(face) => state.list_payments(account, *face, &PageQuery::parse(form)?),
        Route::RefundRead(id) => Ok(state.refund_json(state.find_refund(account, id, "id")?)),
        Route::RefundList => state.list_refunds(account, form, now_ms),
        Route::RefundUpdate(id) => {
            let at = state.find_refund(account, id, "id")?;
            state.update_refund(at, form, now_ms)?;
            Ok(state.refund_json(at))
        }
        Route::RefundCancel(id) => {
            let at = state.find_refund(account, id, "id")?;
            state.cancel_refund(at, now_ms)?;
            Ok(state.refund_json(at))
        }
        Route::TransactionRead(id) => state.transaction_json(account, id),
        Route::TransactionList => state.list_transactions(account, form),
        Route::RefundCreate | Route::PaymentCreate(_) => Err(ApiError::internal(500)),
    }
}
