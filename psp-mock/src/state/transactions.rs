//! Balance transactions: what moved on the account's balance, and why. The settlement report is read from these.

use super::{Id, State};
use crate::wire::objects::{ListObject, TransactionObject};
use crate::wire::page::{Candidates, PageQuery};
use crate::wire::{ApiError, Currency, Form};

/// Money becomes available this long after it moved.
const AVAILABLE_AFTER_S: i64 = 2 * 24 * 60 * 60;

/// The PSP's fee on a charge: this share in thousandths, plus a fixed part. Refunds cost nothing and give no fee back.
const FEE_THOUSANDTHS: i64 = 29;
const FEE_FIXED: i64 = 30;

#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) id: Id,
    pub(crate) kind: TransactionKind,
    pub(crate) payment: u32,
    pub(crate) refund: Option<u32>,
    pub(crate) amount: i64,
    pub(crate) fee: i64,
    pub(crate) currency: Currency,
    pub(crate) created_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionKind {
    Charge,
    Refund,
    RefundFailure,
    Dispute,
}

impl TransactionKind {
    fn wire(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::RefundFailure => "refund_failure",
            Self::Dispute => "adjustment",
        }
    }

    pub(crate) fn category(self) -> &'static str {
        match self {
            Self::Dispute => "dispute",
            kind => kind.wire(),
        }
    }
}

impl Transaction {
    pub(crate) fn available_on_s(&self) -> i64 {
        self.created_ms / 1000 + AVAILABLE_AFTER_S
    }
}

impl State {
    pub(crate) fn book_charge(&mut self, payment: u32, now_ms: i64) {
        let amount = self.payments[payment].amount;
        let fee = amount / 1000 * FEE_THOUSANDTHS + amount % 1000 * FEE_THOUSANDTHS / 1000 + FEE_FIXED;
        self.book(TransactionKind::Charge, payment, None, amount, fee, now_ms);
    }

    /// Opens or closes a dispute: while it is open no refund is possible. Opening takes the money away.
    pub(crate) fn dispute(&mut self, payment: u32, open: bool, now_ms: i64) {
        let record = &mut self.payments[payment];
        let (was_open, amount) = (record.disputed, record.amount);
        record.disputed = open;
        if was_open != open {
            self.book(TransactionKind::Dispute, payment, None, if open { -amount } else { amount }, 0, now_ms);
        }
    }

    pub(crate) fn book_refund(&mut self, refund: u32, kind: TransactionKind, now_ms: i64) -> u32 {
        let record = &self.refunds[refund];
        let amount = if kind == TransactionKind::Refund { -record.amount } else { record.amount };
        self.book(kind, record.payment, Some(refund), amount, 0, now_ms)
    }

    fn book(
        &mut self,
        kind: TransactionKind,
        payment: u32,
        refund: Option<u32>,
        amount: i64,
        fee: i64,
        now_ms: i64,
    ) -> u32 {
        let id: Id = self.ids.next("txn").into();
        let at = self.transactions.len() as u32;
        let currency = match refund {
            Some(refund) => self.refunds[refund].currency,
            None => {
                self.payments[payment].transactions.push(at);
                self.payments[payment].currency
            }
        };
        self.transaction_by_id.insert(id.clone(), at);
        self.transactions.push(Transaction { id, kind, payment, refund, amount, fee, currency, created_ms: now_ms });
        at
    }

    pub(crate) fn source<'a>(&'a self, transaction: &Transaction) -> &'a str {
        match transaction.refund {
            Some(refund) => &self.refunds[refund].id,
            None => self.payments[transaction.payment].charge.as_deref().unwrap_or_default(),
        }
    }

    pub(crate) fn account_of(&self, transaction: &Transaction) -> &str {
        &self.payments[transaction.payment].account
    }

    fn transaction_object<'a>(&'a self, transaction: &'a Transaction) -> TransactionObject<'a> {
        TransactionObject {
            id: &transaction.id,
            object: "balance_transaction",
            amount: transaction.amount,
            available_on: transaction.available_on_s(),
            created: transaction.created_ms / 1000,
            currency: transaction.currency.as_str(),
            description: None,
            exchange_rate: None,
            fee: transaction.fee,
            fee_details: [],
            net: transaction.amount - transaction.fee,
            reporting_category: transaction.kind.category(),
            source: self.source(transaction),
            status: "available",
            kind: transaction.kind.wire(),
        }
    }

    fn find_transaction(&self, account: &str, id: &str, param: &'static str) -> Result<u32, ApiError> {
        let found = self.transaction_by_id.get(id).copied();
        let own = found.filter(|at| self.account_of(&self.transactions[*at]) == account);
        own.ok_or_else(|| ApiError::no_such("balance transaction", id, param))
    }

    /// Positions of the transactions whose source has this id, oldest first.
    fn transactions_of(&self, id: &str) -> Vec<u32> {
        match (self.refund_by_id.get(id), self.payment_named(id)) {
            (Some(at), _) => {
                let refund = &self.refunds[*at];
                refund.transaction.into_iter().chain(refund.failure_transaction).collect()
            }
            (None, Some(at)) if self.payments[at].charge.as_deref() == Some(id) => {
                self.payments[at].transactions.clone()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn transaction_json(&self, account: &str, id: &str) -> Result<Vec<u8>, ApiError> {
        let at = self.find_transaction(account, id, "id")?;
        Ok(serde_json::to_vec(&self.transaction_object(&self.transactions[at])).unwrap_or_default())
    }

    pub(crate) fn list_transactions(&self, account: &str, form: &Form) -> Result<Vec<u8>, ApiError> {
        let query = PageQuery::parse(form)?;
        let find = |id: &str, param| self.find_transaction(account, id, param);
        let cursor = query.cursor_at(find)?;
        let (kind, currency) = (form.text("type"), form.text("currency"));
        let of_source = form.text("source").map(|id| self.transactions_of(id));
        let keep = |at: u32| {
            let transaction = &self.transactions[at];
            self.account_of(transaction) == account
                && kind.is_none_or(|want| transaction.kind.wire() == want)
                && currency.is_none_or(|want| transaction.currency.as_str() == want)
                && query.covers(transaction.created_ms / 1000)
        };
        let all = Candidates::Below(self.transactions.len() as u32);
        let page = of_source.as_deref().map_or(all, Candidates::These).page(cursor.as_ref(), query.limit, keep);
        let data = page.positions.iter().map(|at| self.transaction_object(&self.transactions[*at])).collect();
        let list = ListObject { object: "list", url: "/v1/balance_transactions", has_more: page.has_more, data };
        Ok(serde_json::to_vec(&list).unwrap_or_default())
    }
}
