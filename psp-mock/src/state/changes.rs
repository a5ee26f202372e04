//! What happens without a call: refunds that succeed late, fail after success, and creates that execute after their caller gave up.
//!
//! pending or requires_action -> succeeded (money moves) | failed; succeeded -> failed (money comes back). Failed and canceled are final.

use super::State;
use super::keys::{Answer, KeyUse};
use super::refunds::{RefundOrder, RefundStatus};
use super::transactions::TransactionKind;
use crate::faults::{Change, Script};

/// Something planned for a time of the mock's clock.
#[derive(Debug)]
pub(crate) enum Due {
    Change { refund: u32, change: Change },
    Execute(Box<LateCreate>),
}

/// A create whose caller has already lost the connection.
#[derive(Debug)]
pub(crate) struct LateCreate {
    pub(crate) order: RefundOrder,
    pub(crate) key: Option<KeyUse>,
    pub(crate) script: Script,
}

impl State {
    pub(crate) fn plan_changes(&mut self, refund: u32, changes: &[(i64, Change)], now_ms: i64) {
        for (after_ms, change) in changes {
            self.plan(now_ms.saturating_add(*after_ms), Due::Change { refund, change: change.clone() });
        }
    }

    pub(crate) fn plan(&mut self, at_ms: i64, due: Due) {
        self.planned += 1;
        self.due.insert((at_ms, self.planned), due);
    }

    pub(crate) fn next_due_ms(&self) -> Option<i64> {
        self.due.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    pub(crate) fn apply_due(&mut self, now_ms: i64) {
        while self.next_due_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            let Some(((at_ms, _), due)) = self.due.pop_first() else { return };
            match due {
                Due::Change { refund, change } => self.change(refund, change, at_ms),
                Due::Execute(late) => {
                    let LateCreate { order, key, script } = *late;
                    let answer = self.run_create(order, &script, at_ms);
                    if let Some(key) = key {
                        self.keys.finish(&key, answer, at_ms);
                    }
                }
            }
        }
    }

    /// Executes a create and makes its answer.
    pub(crate) fn run_create(&mut self, order: RefundOrder, script: &Script, now_ms: i64) -> Answer {
        match self.create_refund(order, script, now_ms) {
            Ok(at) => Answer::ok(self.created_json(at, script)),
            Err(error) => error.into(),
        }
    }

    fn change(&mut self, at: u32, change: Change, now_ms: i64) {
        let status = self.refunds[at].status;
        match (status, change) {
            (RefundStatus::Pending | RefundStatus::RequiresAction, Change::Succeed) => {
                let transaction = self.book_refund(at, TransactionKind::Refund, now_ms);
                let refund = &mut self.refunds[at];
                (refund.status, refund.pending_reason) = (RefundStatus::Succeeded, None);
                refund.transaction = Some(transaction);
                self.emit_refund(at, &["refund.updated"], now_ms);
            }
            (
                RefundStatus::Pending | RefundStatus::RequiresAction | RefundStatus::Succeeded,
                Change::Fail { reason },
            ) => {
                if status == RefundStatus::Succeeded {
                    let transaction = self.book_refund(at, TransactionKind::RefundFailure, now_ms);
                    self.refunds[at].failure_transaction = Some(transaction);
                }
                let refund = &mut self.refunds[at];
                (refund.status, refund.pending_reason) = (RefundStatus::Failed, None);
                refund.failure_reason = Some(reason.into());
                self.payments[refund.payment].refunded -= refund.amount;
                self.emit_refund(at, &["refund.updated", "refund.failed"], now_ms);
            }
            (RefundStatus::Succeeded, Change::Succeed) | (RefundStatus::Failed | RefundStatus::Canceled, _) => {}
        }
    }
}
