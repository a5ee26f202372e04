//! The JSON objects that go over the wire, borrowed from the book for the moment of writing.

use super::form::Metadata;
use serde::Serialize;

pub(crate) const API_VERSION: &str = "2025-09-30.clover";

#[derive(Serialize)]
pub(crate) struct RefundObject<'a> {
    pub(crate) id: &'a str,
    pub(crate) object: &'static str,
    pub(crate) amount: i64,
    pub(crate) balance_transaction: Option<&'a str>,
    pub(crate) charge: Option<&'a str>,
    pub(crate) created: i64,
    pub(crate) currency: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_balance_transaction: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_reason: Option<&'a str>,
    pub(crate) metadata: &'a Metadata,
    pub(crate) payment_intent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending_reason: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) receipt_number: Option<&'a str>,
    pub(crate) source_transfer_reversal: Option<&'a str>,
    pub(crate) status: &'static str,
    pub(crate) transfer_reversal: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct ChargeObject<'a> {
    pub(crate) id: &'a str,
    pub(crate) object: &'static str,
    pub(crate) amount: i64,
    pub(crate) amount_captured: i64,
    pub(crate) amount_refunded: i64,
    pub(crate) balance_transaction: Option<&'a str>,
    pub(crate) captured: bool,
    pub(crate) created: i64,
    pub(crate) currency: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) disputed: bool,
    pub(crate) livemode: bool,
    pub(crate) metadata: &'a Metadata,
    pub(crate) paid: bool,
    pub(crate) payment_intent: Option<&'a str>,
    pub(crate) refunded: bool,
    pub(crate) status: &'static str,
}

#[derive(Serialize)]
pub(crate) struct PaymentIntentObject<'a> {
    pub(crate) id: &'a str,
    pub(crate) object: &'static str,
    pub(crate) amount: i64,
    pub(crate) amount_received: i64,
    pub(crate) capture_method: &'static str,
    pub(crate) client_secret: String,
    pub(crate) confirmation_method: &'static str,
    pub(crate) created: i64,
    pub(crate) currency: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) latest_charge: Option<&'a str>,
    pub(crate) livemode: bool,
    pub(crate) metadata: &'a Metadata,
    pub(crate) payment_method: Option<&'a str>,
    pub(crate) payment_method_types: [&'static str; 1],
    pub(crate) status: &'static str,
}

#[derive(Serialize)]
pub(crate) struct TransactionObject<'a> {
    pub(crate) id: &'a str,
    pub(crate) object: &'static str,
    pub(crate) amount: i64,
    pub(crate) available_on: i64,
    pub(crate) created: i64,
    pub(crate) currency: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) exchange_rate: Option<i64>,
    pub(crate) fee: i64,
    pub(crate) fee_details: [(); 0],
    pub(crate) net: i64,
    pub(crate) reporting_category: &'static str,
    pub(crate) source: &'a str,
    pub(crate) status: &'static str,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

#[derive(Serialize)]
pub(crate) struct ListObject<T> {
    pub(crate) object: &'static str,
    pub(crate) url: &'static str,
    pub(crate) has_more: bool,
    pub(crate) data: Vec<T>,
}

#[derive(Serialize)]
pub(crate) struct EventObject<'a, T> {
    pub(crate) id: &'a str,
    pub(crate) object: &'static str,
    pub(crate) api_version: &'static str,
    pub(crate) created: i64,
    pub(crate) data: EventData<T>,
    pub(crate) livemode: bool,
    pub(crate) pending_webhooks: u32,
    pub(crate) request: EventRequest<'a>,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

#[derive(Serialize)]
pub(crate) struct EventData<T> {
    pub(crate) object: T,
}

#[derive(Serialize)]
pub(crate) struct EventRequest<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) idempotency_key: Option<&'a str>,
}
