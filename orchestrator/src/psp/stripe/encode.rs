//! The body of a create: form-encoded, in a fixed order, from the intent alone. It is stored with the intent and never made again.

use super::lookup::payment_parameter;
use crate::psp::{CreateBody, EncodeError};
use jobs::money::to_wire;
use jobs::refund::capabilities::WireAmount;

/// The only reasons Stripe takes as such; any other goes into the metadata.
const REASONS: [&str; 3] = ["duplicate", "fraudulent", "requested_by_customer"];

/// Stripe's limit for a value of the metadata, in characters.
const METADATA_VALUE_MAX: usize = 500;

pub(super) fn create(body: &CreateBody<'_>, wire_amounts: &[WireAmount]) -> Result<Vec<u8>, EncodeError> {
    let payment = payment_parameter(body.psp_payment_ref).ok_or_else(|| {
        EncodeError(format!(
            "{:?} is no payment at Stripe: send an id that begins with pi_, ch_ or py_",
            body.psp_payment_ref
        ))
    })?;
    if !body.amount.is_positive() {
        return Err(EncodeError(format!("{} can not be refunded: send an amount above zero", body.amount)));
    }
    let wire = to_wire(body.amount, wire_amounts).map_err(|error| EncodeError(error.to_string()))?.to_string();
    let mut pairs = vec![(payment, body.psp_payment_ref), ("amount", &wire)];
    let reason = body.refund_reason.filter(|reason| !reason.is_empty());
    if let Some(reason) = reason.filter(|reason| REASONS.contains(reason)) {
        pairs.push(("reason", reason));
    }
    pairs.push(("metadata[intent_id]", body.intent_id.as_str()));
    if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
        let length = reason.chars().count();
        if length > METADATA_VALUE_MAX {
            return Err(EncodeError(format!("the reason has {length} characters: send at most {METADATA_VALUE_MAX}")));
        }
        pairs.push(("metadata[reason]", reason));
    }
    serde_urlencoded::to_string(&pairs).map(String::into_bytes).map_err(|error| EncodeError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobs::ids::IntentId;
    use jobs::money::Money;
    use jobs::refund::capabilities::Capabilities;

    fn encode(payment: &str, minor: i64, code: &str, reason: Option<&str>) -> Result<String, String> {
        let intent_id = IntentId::new("r:1_a").unwrap();
        let amount = Money::new(minor, code.parse().unwrap());
        let body = CreateBody { intent_id: &intent_id, psp_payment_ref: payment, amount, refund_reason: reason };
        let bytes = create(&body, &Capabilities::stripe().wire_amounts).map_err(|error| error.0)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_create_is_encoded_in_the_providers_units_and_fields() {
        for (payment, minor, code, reason, expected) in [
            ("pi_1", 1_050, "USD", None, "payment_intent=pi_1&amount=1050&metadata%5Bintent_id%5D=r%3A1_a"),
            ("ch_1", 5, "UGX", Some(""), "charge=ch_1&amount=500&metadata%5Bintent_id%5D=r%3A1_a"),
            ("py_1", 12_300, "MGA", None, "charge=py_1&amount=123&metadata%5Bintent_id%5D=r%3A1_a"),
            (
                "pi_1",
                1,
                "JPY",
                Some("duplicate"),
                "payment_intent=pi_1&amount=1&reason=duplicate&metadata%5Bintent_id%5D=r%3A1_a",
            ),
            (
                "pi_1",
                1,
                "JPY",
                Some("zu groß & rot"),
                "payment_intent=pi_1&amount=1&metadata%5Bintent_id%5D=r%3A1_a&metadata%5Breason%5D=zu+gro%C3%9F+%26+rot",
            ),
        ] {
            assert_eq!(encode(payment, minor, code, reason).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_stripe_would_not_take_as_meant_is_refused_before_it_is_stored() {
        let long = "x".repeat(501);
        for (payment, minor, code, reason, part) in [
            ("in_1", 1, "USD", None, "begins with pi_, ch_ or py_"),
            ("", 1, "USD", None, "begins with pi_, ch_ or py_"),
            ("pi_", 1, "USD", None, "begins with pi_, ch_ or py_"),
            ("pi_1", 0, "USD", None, "send an amount above zero"),
            ("pi_1", -5_000, "USD", None, "send an amount above zero"),
            ("pi_1", 18_605, "KWD", None, "multiples of 10 only"),
            ("pi_1", 12_345, "MGA", None, "more decimal places"),
            ("pi_1", i64::MAX, "ISK", None, "does not fit"),
            ("pi_1", 1, "USD", Some(long.as_str()), "send at most 500"),
        ] {
            let message = encode(payment, minor, code, reason).expect_err(part);
            assert!(message.contains(part), "{message}");
        }
    }
}
