//! The refunds the memory provider has made, by intent and by payment, and what may still be refunded of a payment.

use chrono::{DateTime, Utc};
use jobs::ids::IntentId;
use jobs::money::Money;
use jobs::refund::intent::Intent;
use jobs::refund::outcome::{Outcome, PspRefund};
use jobs::refund::state::PspStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A create's stored body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) intent_id: IntentId,
    pub(super) psp_payment_ref: String,
    pub(super) amount: Money,
    pub(super) refund_reason: Option<String>,
}

#[derive(Debug)]
struct Made {
    account: String,
    psp_payment_ref: String,
    refund: PspRefund,
    listed_from: DateTime<Utc>,
}

/// Provider account and payment.
type PaymentName = (String, String);

#[derive(Debug, Default)]
pub(super) struct MadeRefunds {
    made: Vec<Made>,
    by_intent: BTreeMap<IntentId, Vec<usize>>,
    by_payment: BTreeMap<PaymentName, Vec<usize>>,
    /// Payments that have a limit.
    captured: BTreeMap<PaymentName, Money>,
}

/// Why a payment can not give what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    UsedUp,
    TooMuch,
}

impl MadeRefunds {
    pub(super) fn limit(&mut self, account: &str, payment: &str, captured: Money) {
        self.captured.insert((account.to_owned(), payment.to_owned()), captured);
    }

    pub(super) fn shortage(&self, account: &str, order: &Order) -> Option<Shortage> {
        let name = (account.to_owned(), order.psp_payment_ref.clone());
        let captured = self.captured.get(&name)?;
        let counts = |status| matches!(status, PspStatus::Processing | PspStatus::Succeeded);
        let refunds = self.by_payment.get(&name).into_iter().flatten().map(|at| &self.made[*at].refund);
        let taken: i128 =
            refunds.filter(|refund| counts(refund.status)).map(|refund| i128::from(refund.amount.minor)).sum();
        let left = i128::from(captured.minor) - taken;
        if left <= 0 {
            Some(Shortage::UsedUp)
        } else {
            (i128::from(order.amount.minor) > left).then_some(Shortage::TooMuch)
        }
    }

    /// An id that no refund has yet.
    pub(super) fn next_reference(&self) -> String {
        format!("re_{}", self.made.len() + 1)
    }

    pub(super) fn add(&mut self, account: &str, order: &Order, refund: PspRefund, listed_from: DateTime<Utc>) {
        let (at, account, psp_payment_ref) = (self.made.len(), account.to_owned(), order.psp_payment_ref.clone());
        self.by_intent.entry(order.intent_id.clone()).or_default().push(at);
        self.by_payment.entry((account.clone(), psp_payment_ref.clone())).or_default().push(at);
        self.made.push(Made { account, psp_payment_ref, refund, listed_from });
    }

    pub(super) fn of(&self, intent_id: &IntentId) -> Vec<PspRefund> {
        self.made_for(intent_id).map(|made| made.refund.clone()).collect()
    }

    /// Sets what the intent's refunds have come to.
    pub(super) fn decide(&mut self, intent_id: &IntentId, status: PspStatus, reason: Option<&str>) {
        for at in self.by_intent.get(intent_id).into_iter().flatten() {
            let refund = &mut self.made[*at].refund;
            refund.status = status;
            refund.reason = reason.map(str::to_owned);
        }
    }

    /// A complete reading as of now: the refund the intent knows by its id, else those that carry its name.
    pub(super) fn read(&self, intent: &Intent, now: DateTime<Utc>) -> Outcome {
        let own = |made: &&Made| made.account == intent.psp_account && made.psp_payment_ref == intent.psp_payment_ref;
        let ours: Vec<&Made> = self.made_for(&intent.intent_id).filter(own).collect();
        let known = ours.iter().find(|made| intent.psp_refund_ref.as_ref() == Some(&made.refund.psp_refund_ref));
        let refunds: Vec<PspRefund> = match known {
            Some(made) => vec![made.refund.clone()],
            None => ours.iter().filter(|made| made.listed_from <= now).map(|made| made.refund.clone()).collect(),
        };
        if refunds.is_empty() { Outcome::Absent } else { Outcome::Found { refunds } }
    }

    fn made_for(&self, intent_id: &IntentId) -> impl Iterator<Item = &Made> {
        self.by_intent.get(intent_id).into_iter().flatten().map(|at| &self.made[*at])
    }
}
