//! `GET /v1/refunds` and `GET /v1/refunds/{any id}`.
//!
//! Any id a person may have finds a refund: intent, PSP refund, payment, PSP payment, merchant reference. An exact `intent_id` is never
//! ambiguous; another id that several refunds share answers `{"refunds": [...]}` instead of one story.

use super::ApiState;
use super::body::{NameInPath, QueryOf};
use super::problem::Problem;
use super::story::story_view;
use super::views::{RefundView, RefundsView};
use crate::store::read::IntentFilter;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use jobs::ids::{IntentId, PaymentId};
use jobs::refund::state::State as RefundState;
use serde::Deserialize;

/// Refunds listed for an ambiguous id.
const HITS_MAX: usize = 100;
const PAGE_DEFAULT: usize = 50;
const PAGE_MAX: usize = 500;

pub async fn show(State(state): State<ApiState>, NameInPath(any_id): NameInPath) -> Result<Response, Problem> {
    let hits = state.store.find(&any_id, HITS_MAX).await?;
    let exact = hits.iter().find(|id| id.as_str() == any_id);
    match (exact, hits.as_slice()) {
        (Some(id), _) | (None, [id]) => one(&state, id).await,
        (None, []) => Err(Problem::refund_unknown(&any_id)),
        (None, several) => {
            let loaded = state.store.load(several).await?;
            let refunds = loaded.files.iter().map(|file| RefundView::from(&file.intent)).collect();
            Ok(Json(RefundsView { refunds, next_cursor: None }).into_response())
        }
    }
}

async fn one(state: &ApiState, id: &IntentId) -> Result<Response, Problem> {
    let story = state.store.story(id).await?.ok_or_else(|| Problem::refund_unknown(id.as_str()))?;
    let provider = state.provider(&story.intent.psp, &story.intent.psp_account);
    Ok(Json(story_view(&story, provider.map(|provider| &provider.capabilities))).into_response())
}

/// What to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// States, with commas; `pending` is all that is not final and not parked.
    state: Option<String>,
    psp: Option<String>,
    payment_id: Option<String>,
    merchant_reference: Option<String>,
    created_from: Option<String>,
    created_before: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

pub async fn list(
    State(state): State<ApiState>,
    QueryOf(query): QueryOf<ListQuery>,
) -> Result<Json<RefundsView>, Problem> {
    let invalid = |detail: String| Problem::bad_request("invalid_query", detail);
    let limit = query.limit.unwrap_or(PAGE_DEFAULT);
    if limit == 0 || limit > PAGE_MAX {
        return Err(invalid(format!("limit is {limit}: use 1 to {PAGE_MAX}")));
    }
    for (what, text) in [("psp", &query.psp), ("merchant_reference", &query.merchant_reference)] {
        if text.as_ref().is_some_and(|text| text.chars().any(char::is_control)) {
            return Err(invalid(format!("{what} holds control characters: nothing on record does")));
        }
    }
    let payment_id =
        query.payment_id.as_deref().map(PaymentId::new).transpose().map_err(|error| invalid(error.to_string()))?;
    let filter = IntentFilter {
        states: query.state.as_deref().map(states).transpose()?.unwrap_or_default(),
        psp: query.psp,
        payment_id,
        merchant_reference: query.merchant_reference,
        created_from: query.created_from.as_deref().map(|text| point_in_time("created_from", text)).transpose()?,
        created_before: query
            .created_before
            .as_deref()
            .map(|text| point_in_time("created_before", text))
            .transpose()?,
    };
    let page = state.store.list(&filter, query.cursor.as_deref(), limit).await.map_err(|error| match error {
        // A cursor is ours to write; one that the store can not read was changed on its way.
        crate::store::StoreError::Refused(_) if query.cursor.is_some() => {
            invalid("cursor is not one this server gave out: start again without it".to_owned())
        }
        error => Problem::from(error),
    })?;
    Ok(Json(RefundsView {
        refunds: page.intents.iter().map(RefundView::from).collect(),
        next_cursor: page.next_cursor,
    }))
}

fn states(text: &str) -> Result<Vec<RefundState>, Problem> {
    let mut states = Vec::new();
    for name in text.split(',') {
        let before = states.len();
        let named = |state: &RefundState| state.as_str() == name || state.shown_as() == name;
        states.extend(RefundState::ALL.into_iter().filter(named));
        if states.len() == before {
            let known = RefundState::ALL.map(RefundState::as_str).join(", ");
            return Err(Problem::bad_request("invalid_query", format!("{name:?} is no state: use pending, {known}")));
        }
    }
    states.sort_unstable();
    states.dedup();
    Ok(states)
}

/// RFC 3339, or a date, which means its first moment in UTC.
fn point_in_time(what: &str, text: &str) -> Result<DateTime<Utc>, Problem> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.with_timezone(&Utc));
    }
    let date: NaiveDate = text.parse().map_err(|_| {
        Problem::bad_request(
            "invalid_query",
            format!("{what} {text:?} is no time: write 2026-12-01 or 2026-12-01T08:00:00Z"),
        )
    })?;
    Ok(date.and_time(NaiveTime::MIN).and_utc())
}
