//! Payments: one record is a payment intent, its charge, or both. Enough of them to refund.
//!
//! A payment intent without a charge has not been confirmed. Charges made directly have no payment intent. What is refundable is
//! the amount minus all refunds that have not failed or been canceled. Left out: capture later, payment methods, customers.

use super::{Id, State};
use crate::wire::form::Metadata;
use crate::wire::objects::{ChargeObject, ListObject, PaymentIntentObject};
use crate::wire::page::{Candidates, PageQuery};
use crate::wire::{ApiError, Currency};

#[derive(Debug)]
pub(crate) struct Payment {
    pub(crate) intent: Option<Id>,
    pub(crate) charge: Option<Id>,
    pub(crate) account: Id,
    pub(crate) amount: i64,
    pub(crate) currency: Currency,
    pub(crate) created_ms: i64,
    pub(crate) metadata: Metadata,
    pub(crate) description: Option<Box<str>>,
    pub(crate) disputed: bool,
    /// Positions of its refunds, oldest first.
    pub(crate) refunds: Vec<u32>,
    /// Money given back or promised: its refunds that have neither failed nor been canceled.
    pub(crate) refunded: i64,
    /// Positions of its own balance transactions: the charge, then disputes.
    pub(crate) transactions: Vec<u32>,
}

/// A payment to be recorded.
#[derive(Debug)]
pub(crate) struct NewPayment {
    pub(crate) intent: Option<Id>,
    pub(crate) charge: Option<Id>,
    pub(crate) account: Id,
    pub(crate) amount: i64,
    pub(crate) currency: Currency,
    pub(crate) metadata: Metadata,
    pub(crate) description: Option<Box<str>>,
}

/// Which of its two faces a payment is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Intent,
    Charge,
}

impl Face {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Intent => "payment_intent",
            Self::Charge => "charge",
        }
    }
}

impl Payment {
    pub(crate) fn id(&self, face: Face) -> Option<&Id> {
        match face {
            Face::Intent => self.intent.as_ref(),
            Face::Charge => self.charge.as_ref(),
        }
    }
}

impl State {
    /// Records a payment; with a charge its money is booked at once.
    pub(crate) fn add_payment(&mut self, new: NewPayment, now_ms: i64) -> Result<u32, ApiError> {
        let position = self.payments.len() as u32;
        if let Some(taken) = [&new.intent, &new.charge].into_iter().flatten().find(|id| self.payment_by_id.contains(id))
        {
            return Err(ApiError::invalid(format!("The id '{taken}' is taken."))
                .coded("resource_already_exists")
                .on("id"));
        }
        for id in [&new.intent, &new.charge].into_iter().flatten() {
            self.payment_by_id.insert(id.clone(), position);
        }
        let NewPayment { intent, charge, account, amount, currency, metadata, description } = new;
        let has_charge = charge.is_some();
        let (created_ms, disputed, refunds, refunded, transactions) = (now_ms, false, Vec::new(), 0, Vec::new());
        self.payments.push(Payment {
            intent,
            charge,
            account,
            amount,
            currency,
            created_ms,
            metadata,
            description,
            disputed,
            refunds,
            refunded,
            transactions,
        });
        if has_charge {
            self.book_charge(position, now_ms);
        }
        Ok(position)
    }

    /// Gives a payment intent its charge; a second confirmation changes nothing.
    pub(crate) fn confirm(&mut self, position: u32, now_ms: i64) {
        if self.payments[position].charge.is_none() {
            let charge: Id = self.ids.next("ch").into();
            self.payment_by_id.insert(charge.clone(), position);
            self.payments[position].charge = Some(charge);
            self.book_charge(position, now_ms);
        }
    }

    /// The payment that has this id as this face, in this account.
    pub(crate) fn find_payment(
        &self,
        account: &str,
        face: Face,
        id: &str,
        param: &'static str,
    ) -> Result<u32, ApiError> {
        let found = self.payment_by_id.get(id).copied().filter(|at| {
            let payment = &self.payments[*at];
            *payment.account == *account && payment.id(face).is_some_and(|own| **own == *id)
        });
        found.ok_or_else(|| ApiError::no_such(face.name(), id, param))
    }

    /// The payment that has this id, in whatever account and face.
    pub(crate) fn payment_named(&self, id: &str) -> Option<u32> {
        self.payment_by_id.get(id).copied()
    }

    pub(crate) fn payment_object<'a>(&'a self, payment: &'a Payment) -> PaymentIntentObject<'a> {
        let id = payment.intent.as_deref().unwrap_or_default();
        let paid = payment.charge.is_some();
        PaymentIntentObject {
            id,
            object: "payment_intent",
            amount: payment.amount,
            amount_received: if paid { payment.amount } else { 0 },
            capture_method: "automatic",
            client_secret: format!("{id}_secret_mock"),
            confirmation_method: "automatic",
            created: payment.created_ms / 1000,
            currency: payment.currency.as_str(),
            description: payment.description.as_deref(),
            latest_charge: payment.charge.as_deref(),
            livemode: false,
            metadata: &payment.metadata,
            payment_method: paid.then_some("pm_mock_card"),
            payment_method_types: ["card"],
            status: if paid { "succeeded" } else { "requires_confirmation" },
        }
    }

    pub(crate) fn charge_object<'a>(&'a self, payment: &'a Payment) -> ChargeObject<'a> {
        let refunded = payment.refunded;
        ChargeObject {
            id: payment.charge.as_deref().unwrap_or_default(),
            object: "charge",
            amount: payment.amount,
            amount_captured: payment.amount,
            amount_refunded: refunded,
            balance_transaction: payment.transactions.first().map(|at| &*self.transactions[*at].id),
            captured: true,
            created: payment.created_ms / 1000,
            currency: payment.currency.as_str(),
            description: payment.description.as_deref(),
            disputed: payment.disputed,
            livemode: false,
            metadata: &payment.metadata,
            paid: true,
            payment_intent: payment.intent.as_deref(),
            refunded: refunded >= payment.amount,
            status: "succeeded",
        }
    }

    pub(crate) fn payment_json(&self, position: u32, face: Face) -> Vec<u8> {
        let payment = &self.payments[position];
        let json = match face {
            Face::Intent => serde_json::to_vec(&self.payment_object(payment)),
            Face::Charge => serde_json::to_vec(&self.charge_object(payment)),
        };
        json.unwrap_or_default()
    }

    pub(crate) fn list_payments(&self, account: &str, face: Face, query: &PageQuery) -> Result<Vec<u8>, ApiError> {
        let find = |id: &str, param| self.find_payment(account, face, id, param);
        let cursor = query.cursor_at(find)?;
        let keep = |at: u32| {
            let payment = &self.payments[at];
            *payment.account == *account && payment.id(face).is_some() && query.covers(payment.created_ms / 1000)
        };
        let page = Candidates::Below(self.payments.len() as u32).page(cursor.as_ref(), query.limit, keep);
        let payments = page.positions.iter().map(|at| &self.payments[*at]);
        let (object, has_more) = ("list", page.has_more);
        let json = match face {
            Face::Intent => {
                let data = payments.map(|p| self.payment_object(p)).collect();
                serde_json::to_vec(&ListObject { object, url: "/v1/payment_intents", has_more, data })
            }
            Face::Charge => {
                let data = payments.map(|p| self.charge_object(p)).collect();
                serde_json::to_vec(&ListObject { object, url: "/v1/charges", has_more, data })
            }
        };
        Ok(json.unwrap_or_default())
    }
}
