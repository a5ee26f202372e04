//! Refunds: created, updated, canceled. How they are shown is in `refund_views`, how one changes on its own in `changes`.
//!
//! Checks in the order Stripe is seen to make them: payment known, paid, not disputed, not fully refunded, amount within the rest.

use super::payments::Face;
use super::transactions::TransactionKind;
use super::{Id, State};
use crate::faults::{Script, Start};
use crate::wire::form::Metadata;
use crate::wire::{ApiError, Currency, Form};

#[derive(Debug)]
pub(crate) struct Refund {
    pub(crate) id: Id,
    pub(crate) payment: u32,
    pub(crate) amount: i64,
    pub(crate) currency: Currency,
    pub(crate) status: RefundStatus,
    pub(crate) pending_reason: Option<&'static str>,
    pub(crate) failure_reason: Option<Box<str>>,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) metadata: Metadata,
    pub(crate) created_ms: i64,
    /// Lists do not show it before.
    pub(crate) listed_ms: i64,
    pub(crate) key: Option<Box<str>>,
    pub(crate) transaction: Option<u32>,
    pub(crate) failure_transaction: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefundStatus {
    Pending,
    RequiresAction,
    Succeeded,
    Failed,
    Canceled,
}

impl RefundStatus {
    pub(crate) fn wire(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::RequiresAction => "requires_action",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
}

/// A well-formed wish for a refund; whether it can be granted is seen when it executes.
#[derive(Clone, Debug)]
pub(crate) struct RefundOrder {
    pub(crate) account: Id,
    pub(crate) face: Face,
    pub(crate) payment: String,
    amount: Option<i64>,
    reason: Option<Box<str>>,
    metadata: Metadata,
    key: Option<Box<str>>,
}

const REASONS: &[&str] = &["duplicate", "fraudulent", "requested_by_customer"];

impl RefundOrder {
    pub(crate) fn parse(form: &Form, account: &Id, key: Option<&str>) -> Result<Self, ApiError> {
        let (face, payment) = match (form.text("payment_intent"), form.text("charge")) {
            (Some(id), _) => (Face::Intent, id),
            (None, Some(id)) => (Face::Charge, id),
            (None, None) => {
                let message =
                    "One of the following params should be provided for this request: payment_intent or charge.";
                return Err(ApiError::invalid(message).coded("parameter_missing"));
            }
        };
        let amount = form.integer("amount")?;
        if amount.is_some_and(|a| a < 1) {
            return Err(ApiError::invalid("Invalid positive integer").coded("parameter_invalid_integer").on("amount"));
        }
        let reason = form.text("reason");
        if let Some(other) = reason.filter(|r| !REASONS.contains(r)) {
            let message = format!("Invalid reason: must be one of {}; got {other}", REASONS.join(", "));
            return Err(ApiError::invalid(message).on("reason"));
        }
        let mut metadata = Metadata::default();
        metadata.merge(form)?;
        let (payment, reason) = (payment.to_owned(), reason.map(Into::into));
        Ok(Self { account: account.clone(), face, payment, amount, reason, metadata, key: key.map(Into::into) })
    }
}

impl State {
    pub(crate) fn create_refund(&mut self, order: RefundOrder, script: &Script, now_ms: i64) -> Result<u32, ApiError> {
        if let Some(refuse) = &script.refuse {
            return Err(refuse.clone());
        }
        let payment_at = self.find_payment(&order.account, order.face, &order.payment, order.face.name())?;
        let rest = self.refundable(payment_at, order.amount)?;
        let currency = self.payments[payment_at].currency;
        let (amount, currency) = if script.answer_only { (rest, currency) } else { script.disguise(rest, currency) };
        let (status, pending_reason) = match script.start {
            Start::Succeeded => (RefundStatus::Succeeded, None),
            Start::Pending { reason } => (RefundStatus::Pending, reason),
            Start::RequiresAction => (RefundStatus::RequiresAction, None),
        };
        let id: Id = self.ids.next("re").into();
        let at = self.refunds.len() as u32;
        self.tallies.refund_executed(order.metadata.get(&self.reference_key), at);
        self.refund_by_id.insert(id.clone(), at);
        let payment = &mut self.payments[payment_at];
        payment.refunds.push(at);
        payment.refunded += amount;
        self.refunds.push(Refund {
            id,
            payment: payment_at,
            amount,
            currency,
            status,
            pending_reason,
            failure_reason: None,
            reason: order.reason,
            metadata: order.metadata,
            created_ms: now_ms,
            listed_ms: now_ms.saturating_add(script.list_lag_ms),
            key: order.key,
            transaction: None,
            failure_transaction: None,
        });
        if status == RefundStatus::Succeeded {
            self.refunds[at].transaction = Some(self.book_refund(at, TransactionKind::Refund, now_ms));
        }
        self.plan_changes(at, &script.changes, now_ms);
        self.emit_refund(at, &["refund.created", "charge.refunded"], now_ms);
        Ok(at)
    }

    /// The amount to refund, if the payment lets it.
    fn refundable(&self, payment_at: u32, asked: Option<i64>) -> Result<i64, ApiError> {
        let payment = &self.payments[payment_at];
        let Some(charge) = &payment.charge else {
            let id = payment.intent.as_deref().unwrap_or_default();
            return Err(ApiError::invalid(format!(
                "This PaymentIntent ({id}) does not have a successful charge to refund."
            )));
        };
        if payment.disputed {
            let message = format!("Charge {charge} has been charged back; cannot issue a refund.");
            return Err(ApiError::invalid(message).coded("charge_disputed"));
        }
        let rest = payment.amount - payment.refunded;
        if rest <= 0 {
            let message = format!("Charge {charge} has already been refunded.");
            return Err(ApiError::invalid(message).coded("charge_already_refunded"));
        }
        let amount = asked.unwrap_or(rest);
        if amount > rest {
            let [amount, rest] = [amount, rest].map(|minor| payment.currency.major(minor));
            let message = format!("Refund amount ({amount}) is greater than unrefunded amount on charge ({rest})");
            return Err(ApiError::invalid(message).on("amount"));
        }
        Ok(amount)
    }

    pub(crate) fn find_refund(&self, account: &str, id: &str, param: &'static str) -> Result<u32, ApiError> {
        let found = self.refund_by_id.get(id).copied();
        let own = found.filter(|at| *self.payments[self.refunds[*at].payment].account == *account);
        own.ok_or_else(|| ApiError::no_such("refund", id, param))
    }

    pub(crate) fn update_refund(&mut self, at: u32, form: &Form, now_ms: i64) -> Result<(), ApiError> {
        let mut metadata = self.refunds[at].metadata.clone();
        metadata.merge(form)?;
        self.refunds[at].metadata = metadata;
        self.emit_refund(at, &["refund.updated"], now_ms);
        Ok(())
    }

    pub(crate) fn cancel_refund(&mut self, at: u32, now_ms: i64) -> Result<(), ApiError> {
        let refund = &mut self.refunds[at];
        if !matches!(refund.status, RefundStatus::Pending | RefundStatus::RequiresAction) {
            let message =
                format!("Refund {} cannot be canceled because it has status {}.", refund.id, refund.status.wire());
            return Err(ApiError::invalid(message));
        }
        (refund.status, refund.pending_reason) = (RefundStatus::Canceled, None);
        self.payments[refund.payment].refunded -= refund.amount;
        self.emit_refund(at, &["refund.updated"], now_ms);
        Ok(())
    }
}

impl Script {
    /// The amount and currency that the script puts in place of these.
    pub(super) fn disguise(&self, amount: i64, currency: Currency) -> (i64, Currency) {
        let other = self.other_currency.as_deref().and_then(|code| Currency::parse(code).ok());
        (self.other_amount.unwrap_or(amount), other.unwrap_or(currency))
    }
}
