//! Refunds and payments as JSON shows them. Read back by the command line, so each derives both ways.

use crate::store::read::Payment;
use chrono::{DateTime, Utc};
use jobs::money::{Currency, Money};
use jobs::refund::intent::Intent;
use serde::{Deserialize, Serialize};

/// A refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundView {
    pub intent_id: String,
    pub payment_id: String,
    pub psp: String,
    pub psp_account: String,
    pub psp_payment_ref: String,
    pub psp_refund_ref: Option<String>,
    pub merchant_reference: Option<String>,
    pub reason: Option<String>,
    pub amount: String,
    pub amount_minor: String,
    pub currency: Currency,
    /// What callers act on: pending, succeeded, failed, canceled, reversed or `needs_review`.
    pub status: String,
    /// How far it got, for people.
    pub state: String,
    pub state_reason: Option<String>,
    pub version: i64,
    pub next_action: String,
    pub next_action_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl From<&Intent> for RefundView {
    fn from(intent: &Intent) -> Self {
        Self {
            intent_id: intent.intent_id.to_string(),
            payment_id: intent.payment_id.to_string(),
            psp: intent.psp.clone(),
            psp_account: intent.psp_account.clone(),
            psp_payment_ref: intent.psp_payment_ref.clone(),
            psp_refund_ref: intent.psp_refund_ref.clone(),
            merchant_reference: intent.merchant_reference.clone(),
            reason: intent.refund_reason.clone(),
            amount: intent.amount.to_decimal(),
            amount_minor: intent.amount.minor.to_string(),
            currency: intent.amount.currency,
            status: intent.state.shown_as().to_owned(),
            state: intent.state.as_str().to_owned(),
            state_reason: intent.state_reason.clone(),
            version: intent.version,
            next_action: intent.next_action.as_str().to_owned(),
            next_action_at: intent.next_action_at,
            created_at: intent.created_at,
            updated_at: intent.updated_at,
        }
    }
}

/// Several refunds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundsView {
    pub refunds: Vec<RefundView>,
    /// Pass it as `cursor` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A payment with its counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentView {
    pub payment_id: String,
    pub psp: String,
    pub psp_account: String,
    pub psp_payment_ref: String,
    pub merchant_reference: Option<String>,
    pub currency: Currency,
    pub captured: String,
    pub captured_minor: String,
    pub charged_back: String,
    pub charged_back_minor: String,
    pub refunded: String,
    pub refunded_minor: String,
    /// Of refunds that are not final.
    pub reserved: String,
    pub reserved_minor: String,
    /// What a new refund may still take; negative when more was refunded than captured.
    pub refundable: String,
    pub refundable_minor: String,
    pub created_at: DateTime<Utc>,
}

impl From<&Payment> for PaymentView {
    fn from(payment: &Payment) -> Self {
        let currency = payment.captured.currency;
        let decimal = |minor: i64| Money { minor, currency }.to_decimal();
        Self {
            payment_id: payment.payment_id.to_string(),
            psp: payment.psp.clone(),
            psp_account: payment.psp_account.clone(),
            psp_payment_ref: payment.psp_payment_ref.clone(),
            merchant_reference: payment.merchant_reference.clone(),
            currency,
            captured: decimal(payment.captured.minor),
            captured_minor: payment.captured.minor.to_string(),
            charged_back: decimal(payment.charged_back_minor),
            charged_back_minor: payment.charged_back_minor.to_string(),
            refunded: decimal(payment.refunded_minor),
            refunded_minor: payment.refunded_minor.to_string(),
            reserved: decimal(payment.reserved_minor),
            reserved_minor: payment.reserved_minor.to_string(),
            refundable: decimal(payment.refundable_minor()),
            refundable_minor: payment.refundable_minor().to_string(),
            created_at: payment.created_at,
        }
    }
}
