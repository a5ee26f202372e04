//! One line of the report, and the report's columns.

use crate::state::State;
use crate::state::transactions::{Transaction, TransactionKind};
use crate::wire::Currency;
use chrono::DateTime;

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) transaction: String,
    pub(crate) category: String,
    pub(crate) source: String,
    pub(crate) payment_intent: String,
    pub(crate) charge: String,
    pub(crate) refund: String,
    pub(crate) created_s: i64,
    pub(crate) available_s: i64,
    /// When the line enters a report.
    pub(crate) reported_s: i64,
    pub(crate) currency: Currency,
    pub(crate) gross: i64,
    pub(crate) fee: i64,
    /// Our reference on the refund.
    pub(crate) reference: String,
    pub(crate) is_refund: bool,
}

impl Line {
    pub(crate) fn new(state: &State, transaction: &Transaction) -> Self {
        let payment = &state.payments[transaction.payment];
        let refund = transaction.refund.map(|at| &state.refunds[at]);
        let text = |id: Option<&str>| id.unwrap_or_default().to_owned();
        Self {
            transaction: transaction.id.to_string(),
            category: transaction.kind.category().to_owned(),
            source: state.source(transaction).to_owned(),
            payment_intent: text(payment.intent.as_deref()),
            charge: text(payment.charge.as_deref()),
            refund: text(refund.map(|refund| &*refund.id)),
            created_s: transaction.created_ms / 1000,
            available_s: transaction.available_on_s(),
            reported_s: transaction.created_ms / 1000,
            currency: transaction.currency,
            gross: transaction.amount,
            fee: transaction.fee,
            reference: text(refund.and_then(|refund| state.reference(&refund.metadata))),
            is_refund: transaction.kind == TransactionKind::Refund,
        }
    }
}

/// Writes the report. Readers must go by column name: Stripe's report versions differ in order.
pub(crate) fn write(lines: &[Line], reference_key: &str) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::with_capacity(256 * (lines.len() + 1)));
    let reference_column = format!("refund_metadata[{reference_key}]");
    writer.write_record([
        "automatic_payout_id",
        "automatic_payout_effective_at_utc",
        "balance_transaction_id",
        "created_utc",
        "available_on_utc",
        "reporting_category",
        "source_id",
        "payment_intent_id",
        "charge_id",
        "refund_id",
        "currency",
        "gross",
        "fee",
        "net",
        "payment_method_type",
        "description",
        &reference_column,
    ])?;
    for line in lines {
        let payout = format!("po_{}_{}", line.reported_s.div_euclid(86_400), line.currency.as_str());
        writer.write_record([
            &payout,
            &utc(line.available_s + (line.reported_s - line.created_s)),
            &line.transaction,
            &utc(line.created_s),
            &utc(line.available_s),
            &line.category,
            &line.source,
            &line.payment_intent,
            &line.charge,
            &line.refund,
            line.currency.as_str(),
            &line.currency.major(line.gross),
            &line.currency.major(line.fee),
            &line.currency.major(line.gross - line.fee),
            "card",
            "",
            &line.reference,
        ])?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn utc(seconds: i64) -> String {
    DateTime::from_timestamp(seconds, 0).map(|at| at.format("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}
