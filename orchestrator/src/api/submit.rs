//! `POST /v1/refunds`: checks the request, derives what the provider will be sent, and waits for the placeholder's commit.
//!
//! A repeat is told by `intent_id` before anything else is judged: a caller who sends again after a lost answer gets the refund it
//! made, even if the payment could not take another one now.

use super::amount::{self, DecimalText, MinorText};
use super::body::{JsonBody, check_text, header_text};
use super::payment_facts::PaymentFacts;
use super::problem::Problem;
use super::submit_queue::SubmitFailure;
use super::views::RefundView;
use super::{ApiProvider, ApiState};
use crate::psp::CreateBody;
use crate::store::submit::{NewIntent, SubmitResult};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jobs::ids::{IntentId, PaymentId};
use jobs::money::{Currency, Money};
use jobs::refund::intent::Intent;
use serde::Deserialize;
use std::sync::Arc;

/// What a caller sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitBody {
    intent_id: String,
    payment_id: String,
    currency: String,
    amount: Option<DecimalText>,
    amount_minor: Option<MinorText>,
    merchant_reference: Option<String>,
    reason: Option<String>,
}

/// The same, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    intent_id: IntentId,
    payment_id: PaymentId,
    amount: Money,
    merchant_reference: Option<String>,
    reason: Option<String>,
}

pub async fn submit(
    State(state): State<ApiState>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<SubmitBody>,
) -> Result<Response, Problem> {
    let wanted = body.check()?;
    check_idempotency_key(&headers, &wanted.intent_id)?;
    let intent = match new_intent(&state, &wanted).await {
        Ok(intent) => intent,
        // It may be a repeat of what was accepted when things were different.
        Err(problem) if problem.status.is_client_error() => return repeated(&state, &wanted).await?.ok_or(problem),
        Err(problem) => return Err(problem),
    };
    let result = state.submit_queue.submit(intent).await.map_err(|failure| match failure {
        SubmitFailure::QueueFull => Problem::overloaded(),
        SubmitFailure::Unavailable => Problem::store_unavailable(),
        SubmitFailure::Refused => Problem::internal(),
    })?;
    if matches!(result, SubmitResult::Created(_)) {
        state.wake.nudge();
    }
    answer(&wanted, result)
}

impl SubmitBody {
    fn check(self) -> Result<Wanted, Problem> {
        let identifier =
            |error: jobs::ids::IdentifierError| Problem::bad_request("invalid_identifier", error.to_string());
        let currency = check_currency(&self.currency)?;
        for (what, text) in [("merchant_reference", &self.merchant_reference), ("reason", &self.reason)] {
            text.as_ref().map_or(Ok(()), |text| check_text(what, text))?;
        }
        Ok(Wanted {
            intent_id: IntentId::new(&self.intent_id).map_err(identifier)?,
            payment_id: PaymentId::new(&self.payment_id).map_err(identifier)?,
            amount: check_amount(self.amount, self.amount_minor, currency)?,
            merchant_reference: self.merchant_reference,
            reason: self.reason,
        })
    }
}

pub(super) fn check_currency(text: &str) -> Result<Currency, Problem> {
    text.parse()
        .map_err(|error: jobs::money::CurrencyError| Problem::bad_request("invalid_currency", error.to_string()))
}

/// Exactly one of the two ways to write an amount.
pub(super) fn check_amount(
    decimal: Option<DecimalText>,
    minor: Option<MinorText>,
    currency: Currency,
) -> Result<Money, Problem> {
    let invalid = |error: amount::AmountError| Problem::bad_request("invalid_amount", error.to_string());
    match (decimal, minor) {
        (Some(DecimalText(text)), None) => amount::parse_decimal(&text, currency).map_err(invalid),
        (None, Some(MinorText(text))) => amount::parse_minor(&text, currency).map_err(invalid),
        (None, None) => {
            Err(Problem::bad_request("invalid_amount", "no amount: send amount, such as \"12.50\", or amount_minor"))
        }
        (Some(_), Some(_)) => {
            Err(Problem::bad_request("invalid_amount", "two amounts: send only one of amount and amount_minor"))
        }
    }
}

fn check_idempotency_key(headers: &HeaderMap, intent_id: &IntentId) -> Result<(), Problem> {
    match header_text(headers, "idempotency-key")? {
        Some(key) if key != intent_id.as_str() => Err(Problem::bad_request(
            "idempotency_key_mismatch",
            format!(
                "the header Idempotency-Key is {key:?} and intent_id is {intent_id:?}: send the same text, or no header"
            ),
        )),
        _ => Ok(()),
    }
}

/// Where the payment was made: from memory, else from the store.
async fn payment_facts(state: &ApiState, id: &PaymentId) -> Result<Arc<PaymentFacts>, Problem> {
    if let Some(facts) = state.payment_facts.get(id) {
        return Ok(facts);
    }
    let payment = state.store.payment(id).await?.ok_or_else(|| Problem::payment_unknown(id.as_str()))?;
    Ok(state.payment_facts.put(id.clone(), PaymentFacts::from(&payment)))
}

async fn new_intent(state: &ApiState, wanted: &Wanted) -> Result<NewIntent, Problem> {
    let facts = payment_facts(state, &wanted.payment_id).await?;
    if facts.currency != wanted.amount.currency {
        return Err(mismatch(wanted, facts.currency.as_str()));
    }
    let provider =
        state.provider(&facts.psp, &facts.psp_account).ok_or_else(|| psp_unknown(&facts.psp, &facts.psp_account))?;
    Ok(NewIntent {
        intent_id: wanted.intent_id.clone(),
        payment_id: wanted.payment_id.clone(),
        amount: wanted.amount,
        merchant_reference: wanted.merchant_reference.clone(),
        refund_reason: wanted.reason.clone(),
        psp: facts.psp.clone(),
        psp_account: facts.psp_account.clone(),
        psp_payment_ref: facts.psp_payment_ref.clone(),
        idempotency_key: jobs::refund::key::idempotency_key(&state.environment, &facts.psp_account, &wanted.intent_id),
        create_body: encode(provider, wanted, &facts.psp_payment_ref)?,
        due_at: None,
    })
}

fn encode(provider: &ApiProvider, wanted: &Wanted, psp_payment_ref: &str) -> Result<Vec<u8>, Problem> {
    let body = CreateBody {
        intent_id: &wanted.intent_id,
        psp_payment_ref,
        amount: wanted.amount,
        refund_reason: wanted.reason.as_deref(),
    };
    provider.provider.encode_create(&body).map_err(|error| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "psp_refuses_amount",
            "The PSP can not be sent this refund",
            error.to_string(),
        )
    })
}

pub(super) fn psp_unknown(psp: &str, account: &str) -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "psp_unknown",
        "The PSP is not configured here",
        format!("this server has no PSP {psp} with account {account}: ask an operator to configure it"),
    )
}

fn mismatch(wanted: &Wanted, payment_currency: &str) -> Problem {
    let detail = format!(
        "payment {} is in {payment_currency} and the refund in {}: send the payment's currency",
        wanted.payment_id, wanted.amount.currency
    );
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "payment_mismatch", "The refund does not fit its payment", detail)
        .with("payment_currency", payment_currency)
}

/// What to answer when the intent is already on record; `None` when it is not.
async fn repeated(state: &ApiState, wanted: &Wanted) -> Result<Option<Response>, Problem> {
    let loaded = state.store.load(std::slice::from_ref(&wanted.intent_id)).await?;
    let Some(file) = loaded.files.into_iter().next() else { return Ok(None) };
    let intent = Box::new(file.intent);
    let same = *wanted == Wanted::of(&intent);
    answer(wanted, if same { SubmitResult::Same(intent) } else { SubmitResult::Conflict(intent) }).map(Some)
}

impl Wanted {
    /// What was wanted when this intent was accepted.
    fn of(intent: &Intent) -> Self {
        Self {
            intent_id: intent.intent_id.clone(),
            payment_id: intent.payment_id.clone(),
            amount: intent.amount,
            merchant_reference: intent.merchant_reference.clone(),
            reason: intent.refund_reason.clone(),
        }
    }
}

fn answer(wanted: &Wanted, result: SubmitResult) -> Result<Response, Problem> {
    match result {
        SubmitResult::Created(intent) => Ok(accepted(StatusCode::ACCEPTED, &intent)),
        SubmitResult::Same(intent) => Ok(accepted(StatusCode::OK, &intent)),
        SubmitResult::Conflict(intent) => Err(conflict(wanted, &intent)),
        SubmitResult::UnknownPayment => Err(Problem::payment_unknown(wanted.payment_id.as_str())),
        SubmitResult::PaymentMismatch { payment_currency } => Err(mismatch(wanted, &payment_currency)),
        SubmitResult::ExceedsRefundable { refundable_minor } => Err(exceeds(wanted, refundable_minor)),
    }
}

fn accepted(status: StatusCode, intent: &Intent) -> Response {
    let location = format!("/v1/refunds/{}", intent.intent_id);
    (status, [(header::LOCATION, location)], Json(RefundView::from(intent))).into_response()
}

fn conflict(wanted: &Wanted, intent: &Intent) -> Problem {
    let recorded = Wanted::of(intent);
    let mut differs = Vec::new();
    if wanted.payment_id != recorded.payment_id {
        differs.push(format!("payment_id is {}", recorded.payment_id));
    }
    if wanted.amount != recorded.amount {
        differs.push(format!("the amount is {}", recorded.amount));
    }
    if wanted.merchant_reference != recorded.merchant_reference {
        differs.push(format!("merchant_reference is {}", or_none(recorded.merchant_reference.as_deref())));
    }
    if wanted.reason != recorded.reason {
        differs.push(format!("reason is {}", or_none(recorded.reason.as_deref())));
    }
    let detail = format!(
        "intent {} is on record with another body ({}): send that body to repeat it, or a new intent_id for another refund",
        wanted.intent_id,
        differs.join(", ")
    );
    Problem::new(StatusCode::CONFLICT, "intent_conflict", "The intent exists with another body", detail)
}

fn or_none(text: Option<&str>) -> String {
    text.map_or_else(|| "absent".to_owned(), |text| format!("{text:?}"))
}

fn exceeds(wanted: &Wanted, refundable_minor: i64) -> Problem {
    let refundable = Money { minor: refundable_minor, currency: wanted.amount.currency };
    let detail = format!(
        "{} was asked and {} of payment {} can still be refunded: ask for at most that",
        wanted.amount, refundable, wanted.payment_id
    );
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "exceeds_refundable", "More than can be refunded", detail)
        .with("refundable", refundable.to_decimal())
        .with("refundable_minor", refundable_minor.to_string())
        .with("currency", refundable.currency.as_str())
}
