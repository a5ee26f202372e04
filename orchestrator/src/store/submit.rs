//! What comes in: payments, and intents with their reservations.

use super::read::Payment;
use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId, Token};
use jobs::money::Money;
use jobs::refund::intent::{Intent, MACHINE_VERSION, NextAction};
use jobs::refund::state::State;

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

impl NewPayment {
    /// What it is once it is on record, nothing refunded yet.
    #[must_use]
    pub fn as_stored(&self, created_at: DateTime<Utc>) -> Payment {
        Payment {
            payment_id: self.payment_id.clone(),
            psp: self.psp.clone(),
            psp_account: self.psp_account.clone(),
            psp_payment_ref: self.psp_payment_ref.clone(),
            merchant_reference: self.merchant_reference.clone(),
            captured: self.captured,
            charged_back_minor: self.charged_back_minor,
            refunded_minor: 0,
            reserved_minor: 0,
            created_at,
        }
    }

    /// Whether a payment on record has the same fields.
    #[must_use]
    pub fn is_same(&self, stored: &Payment) -> bool {
        stored.psp == self.psp
            && stored.psp_account == self.psp_account
            && stored.psp_payment_ref == self.psp_payment_ref
            && stored.merchant_reference == self.merchant_reference
            && stored.captured == self.captured
            && stored.charged_back_minor == self.charged_back_minor
    }
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

/// What a repeat must repeat: payment, amount with its currency, merchant reference, refund reason.
type Body<'a> = (&'a PaymentId, Money, &'a Option<String>, &'a Option<String>);

impl NewIntent {
    /// The row as inserted; the times and the timeline are the database's to say.
    #[must_use]
    pub fn placeholder(&self, due_at: DateTime<Utc>, timeline: i64, created_at: DateTime<Utc>) -> Intent {
        Intent {
            intent_id: self.intent_id.clone(),
            payment_id: self.payment_id.clone(),
            psp: self.psp.clone(),
            psp_account: self.psp_account.clone(),
            psp_payment_ref: self.psp_payment_ref.clone(),
            merchant_reference: self.merchant_reference.clone(),
            refund_reason: self.refund_reason.clone(),
            amount: self.amount,
            idempotency_key: self.idempotency_key.clone(),
            create_body: self.create_body.clone(),
            machine_version: MACHINE_VERSION,
            state: State::Recorded,
            state_reason: None,
            psp_refund_ref: None,
            version: 1,
            fence: Token::NONE,
            holder_session: None,
            open_attempt: None,
            next_action: NextAction::Create,
            next_action_at: Some(due_at),
            rung: 0,
            timeline,
            created_at,
            updated_at: created_at,
        }
    }

    /// Whether the intent on record was submitted with the same body.
    #[must_use]
    pub fn has_body_of(&self, stored: &Intent) -> bool {
        let stored: Body<'_> = (&stored.payment_id, stored.amount, &stored.merchant_reference, &stored.refund_reason);
        self.body() == stored
    }

    /// Whether another submit of the same batch has the same body.
    #[must_use]
    pub fn has_body_of_new(&self, other: &Self) -> bool {
        self.body() == other.body()
    }

    fn body(&self) -> Body<'_> {
        (&self.payment_id, self.amount, &self.merchant_reference, &self.refund_reason)
    }

    /// Whether the payment is in its currency and at its provider, account and provider's payment.
    #[must_use]
    pub fn is_of(&self, payment: &Payment) -> bool {
        payment.captured.currency == self.amount.currency
            && payment.psp == self.psp
            && payment.psp_account == self.psp_account
            && payment.psp_payment_ref == self.psp_payment_ref
    }
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
