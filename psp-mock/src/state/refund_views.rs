//! Refunds as callers see them: one by its id, the answer to a create, and lists.

use super::State;
use super::payments::Face;
use super::refunds::Refund;
use crate::faults::Script;
use crate::wire::objects::{ListObject, RefundObject};
use crate::wire::page::{Candidates, PageQuery};
use crate::wire::{ApiError, Form};

impl State {
    pub(crate) fn refund_object<'a>(&'a self, refund: &'a Refund) -> RefundObject<'a> {
        let payment = &self.payments[refund.payment];
        let transaction = |at: Option<u32>| at.map(|at| &*self.transactions[at].id);
        RefundObject {
            id: &refund.id,
            object: "refund",
            amount: refund.amount,
            balance_transaction: transaction(refund.transaction),
            charge: payment.charge.as_deref(),
            created: refund.created_ms / 1000,
            currency: refund.currency.as_str(),
            failure_balance_transaction: transaction(refund.failure_transaction),
            failure_reason: refund.failure_reason.as_deref(),
            metadata: &refund.metadata,
            payment_intent: payment.intent.as_deref(),
            pending_reason: refund.pending_reason,
            reason: refund.reason.as_deref(),
            receipt_number: None,
            source_transfer_reversal: None,
            status: refund.status.wire(),
            transfer_reversal: None,
        }
    }

    pub(crate) fn refund_json(&self, at: u32) -> Vec<u8> {
        serde_json::to_vec(&self.refund_object(&self.refunds[at])).unwrap_or_default()
    }

    /// The answer to a create, which may say something else than the book does.
    pub(crate) fn created_json(&self, at: u32, script: &Script) -> Vec<u8> {
        let refund = &self.refunds[at];
        let (amount, currency) = script.disguise(refund.amount, refund.currency);
        let object = RefundObject { amount, currency: currency.as_str(), ..self.refund_object(refund) };
        serde_json::to_vec(&object).unwrap_or_default()
    }

    pub(crate) fn list_refunds(&self, account: &str, form: &Form, now_ms: i64) -> Result<Vec<u8>, ApiError> {
        let query = PageQuery::parse(form)?;
        let find = |id: &str, param| self.find_refund(account, id, param);
        let cursor = query.cursor_at(find)?;
        let by_face = |face: Face| form.text(face.name()).map(|id| self.find_payment(account, face, id, face.name()));
        let payment = by_face(Face::Intent).or_else(|| by_face(Face::Charge)).transpose()?;
        let candidates = match payment {
            Some(at) => Candidates::These(&self.payments[at].refunds),
            None => Candidates::Below(self.refunds.len() as u32),
        };
        let keep = |at: u32| {
            let refund = &self.refunds[at];
            refund.listed_ms <= now_ms
                && *self.payments[refund.payment].account == *account
                && query.covers(refund.created_ms / 1000)
        };
        let page = candidates.page(cursor.as_ref(), query.limit, keep);
        let data = page.positions.iter().map(|at| self.refund_object(&self.refunds[*at])).collect();
        let list = ListObject { object: "list", url: "/v1/refunds", has_more: page.has_more, data };
        Ok(serde_json::to_vec(&list).unwrap_or_default())
    }
}
