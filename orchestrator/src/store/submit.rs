//! What comes in: payments, and intents with their reservations.

use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId};
use jobs::money::Money;
use jobs::refund::intent::Intent;

/// A captured payment to refund from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPayment {
    pub payment_id: PaymentId,
    pub psp: String,
    pub psp_account: String,
    /// The provider's id of it.
    pub psp_payment_ref: String,
    pub merchant_reference: Option<String>,
    pub captured: Money,
    /// What disputes took back already, in minor units; uses up what can be refunded.
    pub charged_back_minor: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ImportResult {
    Inserted,
    /// It was there with the same fields.
    Same,
    /// It was there with other fields; nothing changed.
    Conflict,
}

/// A refund as submitted, with what the provider's adapter derived from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIntent {
    pub intent_id: IntentId,
    pub payment_id: PaymentId,
    pub amount: Money,
    pub merchant_reference: Option<String>,
    pub refund_reason: Option<String>,
    pub psp: String,
    pub psp_account: String,
    pub psp_payment_ref: String,
    pub idempotency_key: String,
    pub create_body: Vec<u8>,
    /// When the first create is due; `None` means now by the database's clock.
    pub due_at: Option<DateTime<Utc>>,
}

/// What became of a submit. "Same body" means equal payment, amount, currency, merchant reference and refund reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum SubmitResult {
    /// The placeholder is on disk.
    Created(Box<Intent>),
    /// It was there with the same body.
    Same(Box<Intent>),
    /// It was there with another body.
    Conflict(Box<Intent>),
    UnknownPayment,
    /// The payment is in another currency, or at another provider, account or provider's payment.
    PaymentMismatch {
        payment_currency: String,
    },
    /// More than captured - charged back - refunded - reserved.
    ExceedsRefundable {
        refundable_minor: i64,
    },
}
