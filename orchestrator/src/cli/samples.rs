//! What `dev` shows: a handful of payments, refunds of them, and what goes wrong with each call.

use crate::api::amount::parse_decimal;
use jobs::money::Currency;
use serde::Deserialize;
use serde_json::{Value, json};

const FILE: &str = include_str!("../../../ops/samples/samples.json");

/// The samples of one run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Samples {
    payments: Vec<SamplePayment>,
    pub(super) refunds: Vec<SampleRefund>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SamplePayment {
    payment_id: String,
    psp_payment_ref: String,
    currency: String,
    amount: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SampleRefund {
    /// What there is to see.
    pub(super) about: String,
    pub(super) intent_id: String,
    payment_id: String,
    currency: String,
    amount: String,
    merchant_reference: Option<String>,
    #[serde(default)]
    faults: Vec<psp_mock::Fault>,
}

impl Samples {
    /// Reads the checked-in samples. The suffix keeps a run in an old folder apart from those before.
    pub(super) fn read(suffix: &str) -> Result<Self, String> {
        let mut samples: Self =
            serde_json::from_str(FILE).map_err(|error| format!("the samples can not be read: {error}"))?;
        for payment in &mut samples.payments {
            payment.payment_id.push_str(suffix);
            payment.psp_payment_ref.push_str(suffix);
        }
        for refund in &mut samples.refunds {
            refund.intent_id.push_str(suffix);
            refund.payment_id.push_str(suffix);
        }
        Ok(samples)
    }

    /// Puts payments and faults into the mock.
    pub(super) fn prepare(&self, mock: &psp_mock::Mock) -> Result<(), String> {
        let mut payments = Vec::new();
        for payment in &self.payments {
            let currency: Currency =
                payment.currency.parse().map_err(|error: jobs::money::CurrencyError| error.to_string())?;
            let amount = parse_decimal(&payment.amount, currency).map_err(|error| error.to_string())?;
            payments.push(psp_mock::Payment {
                id: Some(payment.psp_payment_ref.clone()),
                amount: amount.minor,
                currency: payment.currency.to_lowercase(),
                ..psp_mock::Payment::default()
            });
        }
        mock.add_payments(payments).map_err(|refused| refused.to_string())?;
        for refund in &self.refunds {
            for fault in &refund.faults {
                let mut fault = fault.clone();
                fault.matches.intent = Some(refund.intent_id.clone());
                mock.add_fault(fault).map_err(|refused| refused.to_string())?;
            }
        }
        Ok(())
    }

    /// Whether a payment or a refund has this name.
    #[cfg(test)]
    pub(super) fn has(&self, name: &str) -> bool {
        self.payments.iter().any(|payment| payment.payment_id == name)
            || self.refunds.iter().any(|refund| refund.intent_id == name)
    }

    /// The body of `POST /v1/payments`.
    pub(super) fn payment_bodies(&self, psp: &str) -> Vec<Value> {
        let body = |payment: &SamplePayment| {
            json!({
                "payment_id": payment.payment_id,
                "psp": psp,
                "psp_payment_ref": payment.psp_payment_ref,
                "currency": payment.currency,
                "amount": payment.amount,
            })
        };
        self.payments.iter().map(body).collect()
    }
}

impl SampleRefund {
    /// The body of `POST /v1/refunds`.
    pub(super) fn body(&self) -> Value {
        json!({
            "intent_id": self.intent_id,
            "payment_id": self.payment_id,
            "currency": self.currency,
            "amount": self.amount,
            "merchant_reference": self.merchant_reference,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_refund_takes_from_a_sample_payment() {
        let samples = Samples::read("-x").unwrap();
        for refund in &samples.refunds {
            assert!(samples.payments.iter().any(|payment| payment.payment_id == refund.payment_id), "{refund:?}");
            assert!(parse_decimal(&refund.amount, refund.currency.parse().unwrap()).is_ok(), "{refund:?}");
        }
    }
}
