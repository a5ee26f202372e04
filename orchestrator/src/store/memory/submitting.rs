//! Payments and intents come in: each batch is judged row by row against what is stored and what the batch itself has added,
//! and written only when the whole of it stands.

use super::fences::{check_insert, refuse_if};
use super::tables::{File, IntentRow, KeyScope, Tables, move_counters};
use super::{TIMELINE, kept};
use crate::store::StoreError;
use crate::store::read::Payment;
use crate::store::submit::{ImportResult, NewIntent, NewPayment, SubmitResult};
use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId, Token};
use jobs::refund::state::{CountsAs, State};
use std::collections::{BTreeMap, BTreeSet};

/// What a batch is going to write.
#[derive(Default)]
struct Draft {
    payments: BTreeMap<PaymentId, Payment>,
    psp_payments: BTreeSet<KeyScope>,
    intents: BTreeMap<IntentId, IntentRow>,
    keys: BTreeSet<KeyScope>,
}

impl Tables {
    pub(super) fn import_payments(
        &mut self,
        payments: &[NewPayment],
        now: DateTime<Utc>,
    ) -> Result<Vec<ImportResult>, StoreError> {
        let mut draft = Draft::default();
        let mut results = Vec::with_capacity(payments.len());
        for new in payments {
            results.push(self.import_one(&mut draft, new, now)?);
        }
        self.payments.append(&mut draft.payments);
        self.psp_payments.append(&mut draft.psp_payments);
        Ok(results)
    }

    fn import_one(&self, draft: &mut Draft, new: &NewPayment, now: DateTime<Utc>) -> Result<ImportResult, StoreError> {
        if let Some(old) = draft.payments.get(&new.payment_id).or_else(|| self.payments.get(&new.payment_id)) {
            return Ok(if new.is_same(old) { ImportResult::Same } else { ImportResult::Conflict });
        }
        refuse_if(new.captured.minor <= 0, "payments_captured_positive", "a captured amount is positive")?;
        refuse_if(new.charged_back_minor < 0, "payments_charged_back_not_negative", "charged back is not negative")?;
        let scope = (new.psp.clone(), new.psp_account.clone(), new.psp_payment_ref.clone());
        // The provider's payment is known under another of our names.
        if self.psp_payments.contains(&scope) || !draft.psp_payments.insert(scope) {
            return Ok(ImportResult::Conflict);
        }
        draft.payments.insert(new.payment_id.clone(), new.as_stored(now));
        Ok(ImportResult::Inserted)
    }

    pub(super) fn submit(
        &mut self,
        intents: &[NewIntent],
        now: DateTime<Utc>,
    ) -> Result<Vec<SubmitResult>, StoreError> {
        let mut draft = Draft::default();
        let mut results = Vec::with_capacity(intents.len());
        for new in intents {
            results.push(self.submit_one(&mut draft, new, now)?);
        }
        self.payments.append(&mut draft.payments);
        self.idempotency_keys.append(&mut draft.keys);
        self.intents.extend(draft.intents.into_iter().map(|(id, row)| (id, File::new(row))));
        Ok(results)
    }

    fn submit_one(&self, draft: &mut Draft, new: &NewIntent, now: DateTime<Utc>) -> Result<SubmitResult, StoreError> {
        let stored = || self.intents.get(&new.intent_id).map(|file| &file.row);
        if let Some(row) = draft.intents.get(&new.intent_id).or_else(stored) {
            let intent = Box::new(row.intent.clone());
            return Ok(if new.has_body_of(&intent) {
                SubmitResult::Same(intent)
            } else {
                SubmitResult::Conflict(intent)
            });
        }
        let Some(payment) = draft.payments.get(&new.payment_id).or_else(|| self.payments.get(&new.payment_id)) else {
            return Ok(SubmitResult::UnknownPayment);
        };
        if !new.is_of(payment) {
            return Ok(SubmitResult::PaymentMismatch {
                payment_currency: payment.captured.currency.as_str().to_owned(),
            });
        }
        if new.amount.minor > payment.refundable_minor() {
            return Ok(SubmitResult::ExceedsRefundable { refundable_minor: payment.refundable_minor() });
        }
        let intent = new.placeholder(new.due_at.map_or(now, kept), TIMELINE, now);
        let row = IntentRow { intent, stamp: Token::NONE, stamp_version: 1 };
        check_insert(&row)?;
        let scope = (new.psp.clone(), new.psp_account.clone(), new.idempotency_key.clone());
        refuse_if(
            self.idempotency_keys.contains(&scope) || !draft.keys.insert(scope),
            "refund_intents_key_unique",
            "the key belongs to another intent",
        )?;
        let mut payment = payment.clone();
        move_counters(&mut payment, new.amount, CountsAs::Nothing, State::Recorded.counts_as())?;
        draft.payments.insert(new.payment_id.clone(), payment);
        let created = SubmitResult::Created(Box::new(row.intent.clone()));
        draft.intents.insert(new.intent_id.clone(), row);
        Ok(created)
    }
}
