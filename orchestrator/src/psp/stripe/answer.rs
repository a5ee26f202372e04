//! What an answer means.
//!
//! | answer | meaning |
//! | --- | --- |
//! | 200 with a whole refund | accepted |
//! | 400, 402, 404 of type `card_error` or `invalid_request_error` | rejected |
//! | 400 of type `idempotency_error` | rejected: the key was used with another body |
//! | 409, or code `idempotency_key_in_use` or `lock_timeout` with any status | unknown: another call is at it |
//! | 429 | not executed |
//! | 401, 403 | not executed: who calls is checked before what is asked |
//! | 404 without a code | not executed: the address is not Stripe's, or not this call's |
//! | anything else: 5xx, 3xx, other 2xx and 4xx, a body that can not be read | unknown |
//!
//! A stored 5xx is repeated for the key's life without having executed, or after having executed; only a lookup tells.

use super::body::{ErrorBody, RefundBody};
use super::transport::Answer;
use jobs::ids::IntentId;
use jobs::refund::capabilities::WireAmount;
use jobs::refund::outcome::{Outcome, Rejection, RejectionClass};

/// Longest text of the provider's that is kept, in characters.
const TEXT_MAX: usize = 500;

/// Refusals that come from the state of the charge or the balance, so the call had begun to execute: Stripe stores the answers of
/// those under the key. It stores none for parameters that do not validate or calls that run into each other, and where a code does
/// not tell which it was (`resource_missing`, no code at all), we do not rely on it.
const STORED_UNDER_KEY: [&str; 5] = [
    "balance_insufficient",
    "charge_already_refunded",
    "charge_disputed",
    "charge_not_refundable",
    "refund_disputed_payment",
];

pub(super) fn of_create(answer: &Answer, intent_id: &IntentId, wire_amounts: &[WireAmount]) -> Outcome {
    if answer.status == 200 {
        return match serde_json::from_slice::<RefundBody<'_>>(&answer.body) {
            Ok(body) => shown(&body, intent_id, wire_amounts, |refund| Outcome::Accepted { refund }),
            Err(error) => unreadable(&error),
        };
    }
    let error = ErrorBody::read(&answer.body);
    match error.as_ref().and_then(|error| Some((error, refusal_class(answer.status, error)?))) {
        Some((error, class)) => Outcome::Rejected { rejection: rejection(answer, error, class) },
        None => without_result(answer, error.as_ref()),
    }
}

/// A refund that is shown, if it is readable and not someone else's.
pub(super) fn shown(
    body: &RefundBody<'_>,
    intent_id: &IntentId,
    wire_amounts: &[WireAmount],
    outcome: fn(jobs::refund::outcome::PspRefund) -> Outcome,
) -> Outcome {
    if body.is_of_another(intent_id) {
        return Outcome::Unknown { reason: "the refund shown carries another reference".to_owned() };
    }
    match body.to_refund(wire_amounts) {
        Ok(refund) => outcome(refund),
        Err(reason) => Outcome::Unknown { reason: bounded(&reason) },
    }
}

pub(super) fn unreadable(error: &serde_json::Error) -> Outcome {
    Outcome::Unknown { reason: bounded(&format!("200, body can not be read: {error}")) }
}

pub(super) fn nothing_sent(reason: String) -> Outcome {
    Outcome::NotExecuted { reason, retry_after_ms: None }
}

/// The meaning of an answer that shows no refund and refuses none.
pub(super) fn without_result(answer: &Answer, error: Option<&ErrorBody<'_>>) -> Outcome {
    let (kind, code) = error.map_or(("", ""), |error| (error.kind(), error.code()));
    let reason = bounded([&answer.status.to_string(), kind, code].map(str::trim).join(" ").trim_end());
    let unknown = is_contention(code) || answer.status == 409;
    let not_executed = match answer.status {
        401 | 403 | 429 => true,
        404 => error.is_some() && code.is_empty(),
        _ => false,
    };
    if not_executed && !unknown {
        Outcome::NotExecuted { reason, retry_after_ms: answer.retry_after_ms }
    } else {
        Outcome::Unknown { reason }
    }
}

/// Another call is at the same key or object.
fn is_contention(code: &str) -> bool {
    matches!(code, "idempotency_key_in_use" | "lock_timeout")
}

/// The class of a refusal; `None` when the answer is not one.
fn refusal_class(status: u16, error: &ErrorBody<'_>) -> Option<RejectionClass> {
    let code = error.code();
    if is_contention(code) {
        return None;
    }
    match (status, error.kind()) {
        (400, "idempotency_error") => Some(RejectionClass::KeyReused),
        (404, _) if code.is_empty() => None,
        (400 | 402 | 404, "card_error" | "invalid_request_error") if code == "charge_already_refunded" => {
            Some(RejectionClass::AlreadyRefunded)
        }
        (400 | 402 | 404, "card_error" | "invalid_request_error") => Some(RejectionClass::Final),
        _ => None,
    }
}

fn rejection(answer: &Answer, error: &ErrorBody<'_>, class: RejectionClass) -> Rejection {
    let code = if error.code().is_empty() { error.kind() } else { error.code() };
    // A refusal that is itself a repeat was stored, whatever its code.
    let stored = answer.replayed || STORED_UNDER_KEY.contains(&code);
    Rejection {
        code: bounded(code),
        message: bounded(error.message()),
        stored_under_key: stored && class != RejectionClass::KeyReused,
        class,
    }
}

/// The first characters of a text that came from outside.
pub(super) fn bounded(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}
