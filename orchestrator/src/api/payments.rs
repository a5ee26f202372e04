//! `POST /v1/payments` and `GET /v1/payments/{id}`: what refunds take from.
//!
//! One payment, or a list of up to a thousand. Every one is checked before any is stored. One that exists with other fields is a conflict and stays
//! as it is; the others of the list are stored, and the answer names each. Sending the same list again is safe.

use super::ApiState;
use super::amount::{DecimalText, MinorText};
use super::body::{JsonBody, NameInPath, check_text};
use super::payment_facts::PaymentFacts;
use super::problem::Problem;
use super::submit::{check_amount, check_currency, psp_unknown};
use super::views::PaymentView;
use crate::store::BATCH_MAX;
use crate::store::submit::{ImportResult, NewPayment};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jobs::ids::{IDENTIFIER_LENGTH_MAX, PaymentId};
use serde::{Deserialize, Serialize};

/// A payment as a caller sends it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentBody {
    payment_id: String,
    psp: String,
    /// The configured account when absent.
    psp_account: Option<String>,
    psp_payment_ref: String,
    merchant_reference: Option<String>,
    currency: String,
    #[serde(alias = "captured")]
    amount: Option<DecimalText>,
    #[serde(alias = "captured_minor")]
    amount_minor: Option<MinorText>,
    /// What disputes took back already.
    charged_back_minor: Option<MinorText>,
}

/// What became of one payment of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedView {
    pub payment_id: String,
    /// `inserted`, `same` or `conflict`.
    pub result: String,
}

pub async fn import(
    State(state): State<ApiState>,
    JsonBody(body): JsonBody<serde_json::Value>,
) -> Result<Response, Problem> {
    let is_list = body.is_array();
    let items = match body {
        serde_json::Value::Array(items) => items,
        one => vec![one],
    };
    if items.is_empty() || items.len() > BATCH_MAX {
        return Err(Problem::bad_request(
            "invalid_body",
            format!("{} payments sent: send 1 to {BATCH_MAX}", items.len()),
        ));
    }
    let mut payments = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let payment = serde_json::from_value::<PaymentBody>(item)
            .map_err(|error| Problem::bad_request("invalid_body", error.to_string()))
            .and_then(|body| body.check(&state));
        payments.push(payment.map_err(|problem| if is_list { at_index(index, problem) } else { problem })?);
    }
    let results = state.store.import_payments(&payments).await?;
    for (payment, result) in payments.iter().zip(&results) {
        if *result != ImportResult::Conflict {
            state.payment_facts.put(payment.payment_id.clone(), PaymentFacts::from(payment));
        }
    }
    if is_list { answer_list(&payments, &results) } else { answer_one(&state, &payments, &results).await }
}

fn at_index(index: usize, problem: Problem) -> Problem {
    Problem { detail: format!("payment {} of the list: {}; nothing was stored", index + 1, problem.detail), ..problem }
        .with("index", index)
}

impl PaymentBody {
    fn check(self, state: &ApiState) -> Result<NewPayment, Problem> {
        let payment_id = PaymentId::new(&self.payment_id)
            .map_err(|error| Problem::bad_request("invalid_identifier", error.to_string()))?;
        let account = match (self.psp_account, state.providers.get(&self.psp)) {
            (Some(account), Some(provider)) if provider.account == account => account,
            (None, Some(provider)) => provider.account.clone(),
            (account, _) => return Err(psp_unknown(&self.psp, account.as_deref().unwrap_or("of any name"))),
        };
        check_text("psp_payment_ref", &self.psp_payment_ref)?;
        if self.psp_payment_ref.len() > IDENTIFIER_LENGTH_MAX {
            return Err(Problem::bad_request("invalid_text", "psp_payment_ref is too long for an id"));
        }
        self.merchant_reference.as_ref().map_or(Ok(()), |text| check_text("merchant_reference", text))?;
        let currency = check_currency(&self.currency)?;
        let captured = check_amount(self.amount, self.amount_minor, currency)?;
        let charged_back_minor = self.charged_back_minor.map_or(Ok(0), |MinorText(text)| {
            text.parse().ok().filter(|minor: &i64| *minor >= 0).ok_or_else(|| {
                Problem::bad_request(
                    "invalid_amount",
                    format!("charged_back_minor {text:?} is not zero or more minor units"),
                )
            })
        })?;
        Ok(NewPayment {
            payment_id,
            psp: self.psp,
            psp_account: account,
            psp_payment_ref: self.psp_payment_ref,
            merchant_reference: self.merchant_reference,
            captured,
            charged_back_minor,
        })
    }
}

fn conflict(ids: &[&str]) -> Problem {
    let detail = format!(
        "on record with other fields, and unchanged: {}; compare them with GET /v1/payments/ID",
        ids.join(", ")
    );
    Problem::new(StatusCode::CONFLICT, "payment_conflict", "The payment exists with other fields", detail)
}

async fn answer_one(state: &ApiState, payments: &[NewPayment], results: &[ImportResult]) -> Result<Response, Problem> {
    let (Some(payment), Some(result)) = (payments.first(), results.first()) else { return Err(Problem::internal()) };
    let status = match result {
        ImportResult::Inserted => StatusCode::CREATED,
        ImportResult::Same => StatusCode::OK,
        ImportResult::Conflict => return Err(conflict(&[payment.payment_id.as_str()])),
    };
    let payment = state.store.payment(&payment.payment_id).await?.ok_or_else(Problem::internal)?;
    Ok((status, Json(PaymentView::from(&payment))).into_response())
}

fn answer_list(payments: &[NewPayment], results: &[ImportResult]) -> Result<Response, Problem> {
    let mut views = Vec::with_capacity(payments.len());
    let mut conflicts = Vec::new();
    for (payment, result) in payments.iter().zip(results) {
        let result = match result {
            ImportResult::Inserted => "inserted",
            ImportResult::Same => "same",
            ImportResult::Conflict => {
                conflicts.push(payment.payment_id.as_str());
                "conflict"
            }
        };
        views.push(ImportedView { payment_id: payment.payment_id.to_string(), result: result.to_owned() });
    }
    let views = serde_json::to_value(&views).map_err(|_| Problem::internal())?;
    if conflicts.is_empty() {
        return Ok(Json(serde_json::json!({ "results": views })).into_response());
    }
    Err(conflict(&conflicts).with("results", views))
}

pub async fn show(State(state): State<ApiState>, NameInPath(id): NameInPath) -> Result<Json<PaymentView>, Problem> {
    let Ok(payment_id) = PaymentId::new(&id) else { return Err(Problem::payment_unknown(&id)) };
    let payment = state.store.payment(&payment_id).await?.ok_or_else(|| Problem::payment_unknown(&id))?;
    Ok(Json(PaymentView::from(&payment)))
}
