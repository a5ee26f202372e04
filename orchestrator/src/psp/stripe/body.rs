//! Stripe's JSON, as far as we read it. Everything is optional here: what is missing where it is needed is found out by the reader,
//! so that one odd refund of someone else does not spoil a list.

use jobs::ids::IntentId;
use jobs::money::{Currency, from_wire};
use jobs::refund::capabilities::WireAmount;
use jobs::refund::outcome::PspRefund;
use jobs::refund::state::PspStatus;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// Longest id of a refund that is believed.
const REFERENCE_MAX: usize = 255;

/// Text that is borrowed from the answer unless it has escapes.
#[derive(Debug)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct RefundBody<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    amount: Option<i64>,
    #[serde(borrow)]
    currency: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    pending_reason: Option<Text<'a>>,
    #[serde(borrow)]
    failure_reason: Option<Text<'a>>,
    #[serde(borrow)]
    metadata: Option<MetadataBody<'a>>,
}

#[derive(Debug, Deserialize)]
struct MetadataBody<'a> {
    #[serde(borrow)]
    intent_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PageBody<'a> {
    pub(super) has_more: bool,
    #[serde(borrow)]
    pub(super) data: Vec<RefundBody<'a>>,
}

#[derive(Debug, Deserialize)]
struct ErrorEnvelope<'a> {
    #[serde(borrow)]
    error: ErrorBody<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    code: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
}

impl<'a> ErrorBody<'a> {
    /// The error object of an answer, if it has one.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice::<ErrorEnvelope<'a>>(body).ok().map(|envelope| envelope.error)
    }

    pub(super) fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", Text::as_str)
    }

    pub(super) fn code(&self) -> &str {
        self.code.as_ref().map_or("", Text::as_str)
    }

    pub(super) fn message(&self) -> &str {
        self.message.as_ref().map_or("", Text::as_str)
    }
}

impl RefundBody<'_> {
    /// Our name for it, if it carries one.
    pub(super) fn reference(&self) -> Option<&str> {
        self.metadata.as_ref()?.intent_id.as_ref().map(Text::as_str)
    }

    /// It carries another intent's name.
    pub(super) fn is_of_another(&self, intent_id: &IntentId) -> bool {
        self.reference().is_some_and(|reference| reference != intent_id.as_str())
    }

    /// The refund in our units, or what is wrong with it.
    pub(super) fn to_refund(&self, wire_amounts: &[WireAmount]) -> Result<PspRefund, String> {
        let id = self.id.as_ref().map_or("", Text::as_str);
        if id.is_empty() || id.len() > REFERENCE_MAX || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("refund without a usable id".to_owned());
        }
        let missing = |field: &str| format!("refund {id} without {field}");
        let wire = self.amount.ok_or_else(|| missing("amount"))?;
        let code = self.currency.as_ref().ok_or_else(|| missing("currency"))?.as_str();
        let currency: Currency = code.to_ascii_uppercase().parse().map_err(|error| format!("refund {id}: {error}"))?;
        let amount = from_wire(wire, currency, wire_amounts).map_err(|error| format!("refund {id}: {error}"))?;
        let status = match self.status.as_ref().map_or("", Text::as_str) {
            "succeeded" => PspStatus::Succeeded,
            "pending" | "requires_action" => PspStatus::Processing,
            "failed" => PspStatus::Failed,
            "canceled" => PspStatus::Canceled,
            _ => return Err(missing("a known status")),
        };
        let reason = self.pending_reason.as_ref().or(self.failure_reason.as_ref());
        let reason = reason.map(|text| super::answer::bounded(text.as_str()));
        Ok(PspRefund { psp_refund_ref: id.to_owned(), status, amount, reason })
    }
}
