//! Admin calls under `/_mock/`: script faults, read the book and the counters, move the clock, start over.
//!
//! No credentials: this is a test tool that listens on loopback. Errors are `{"error":"..."}`.

use super::Shared;
use crate::book::{self, BookPage, BookQuery, Payment};
use crate::config::Webhook;
use crate::faults::Fault;
use crate::settlement::{self, ReportQuery};
use crate::state::tallies::IntentCounters;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Bulk payments and scripts: some tens of thousands per call.
const BODY_LARGEST: usize = 16 * 1024 * 1024;

/// Faults shown at a time.
const FAULTS_SHOWN: usize = 10_000;

type App = State<Arc<Shared>>;

struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/_mock/faults", post(add_faults).get(list_faults).delete(clear_faults))
        .route("/_mock/faults/{id}", delete(remove_fault))
        .route("/_mock/book", get(read_book))
        .route("/_mock/counters", get(counters))
        .route("/_mock/clock", get(read_clock).post(move_clock))
        .route("/_mock/reset", post(reset))
        .route("/_mock/payments", post(add_payments))
        .route("/_mock/disputes", post(dispute))
        .route("/_mock/webhook", post(set_webhook))
        .route("/_mock/settlement.csv", get(report))
        .layer(DefaultBodyLimit::max(BODY_LARGEST))
}

/// Reads one JSON object or an array of them; unlike an untagged enum it says what is wrong.
fn one_or_many<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, Refused> {
    let many = body.trim_ascii_start().first() == Some(&b'[');
    let read = if many { serde_json::from_slice(body) } else { serde_json::from_slice(body).map(|one| vec![one]) };
    read.map_err(|error| Refused(StatusCode::BAD_REQUEST, error.to_string()))
}

async fn add_faults(State(shared): App, body: axum::body::Bytes) -> Result<Json<Value>, Refused> {
    let faults: Vec<Fault> = one_or_many(&body)?;
    let mut state = shared.lock();
    let added = faults.into_iter().map(|fault| state.faults.add(fault)).collect::<Result<Vec<u64>, _>>();
    added.map(|ids| Json(json!({ "added": ids }))).map_err(|error| Refused(StatusCode::BAD_REQUEST, error))
}

async fn list_faults(State(shared): App) -> Json<Value> {
    let state = shared.lock();
    let waiting: Vec<_> = state.faults.waiting().take(FAULTS_SHOWN).collect();
    Json(json!({ "faults": waiting }))
}

async fn clear_faults(State(shared): App) -> StatusCode {
    shared.lock().faults.clear();
    StatusCode::NO_CONTENT
}

async fn remove_fault(State(shared): App, Path(id): Path<u64>) -> StatusCode {
    if shared.lock().faults.remove(id) { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

async fn read_book(State(shared): App, Query(query): Query<BookQuery>) -> Json<BookPage> {
    Json(book::read(&shared.now().0, &query))
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CountersQuery {
    intent: Option<String>,
    from: usize,
    limit: Option<usize>,
}

async fn counters(State(shared): App, Query(query): Query<CountersQuery>) -> Json<Value> {
    let totals = shared.totals();
    let state = shared.lock();
    let limit = query.limit.unwrap_or(1_000).min(book::PAGE_MOST);
    let intents: Vec<IntentCounters> = match &query.intent {
        Some(intent) => state.tallies.of(intent).into_iter().collect(),
        None => state.tallies.page(query.from, limit),
    };
    let next = (query.intent.is_none() && intents.len() == limit && limit > 0).then_some(query.from + limit);
    Json(json!({ "totals": totals, "intents": intents, "next": next }))
}

async fn read_clock(State(shared): App) -> Json<Value> {
    Json(json!({ "now_ms": shared.clock.now_ms(), "offset_ms": shared.clock.offset_ms() }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forward {
    forward_ms: u64,
}

async fn move_clock(State(shared): App, Json(forward): Json<Forward>) -> Json<Value> {
    shared.advance(Duration::from_millis(forward.forward_ms));
    read_clock(State(shared)).await
}

async fn reset(State(shared): App) -> StatusCode {
    shared.reset();
    StatusCode::NO_CONTENT
}

async fn add_payments(State(shared): App, body: axum::body::Bytes) -> Result<Json<Value>, Refused> {
    let payments: Vec<Payment> = one_or_many(&body)?;
    match book::add_payments(&shared, payments) {
        Ok(added) => Ok(Json(json!({ "added": added }))),
        Err(error) => Err(Refused(StatusCode::BAD_REQUEST, error.message().to_owned())),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dispute {
    payment: String,
    /// False ends the dispute and gives the money back.
    #[serde(default = "open")]
    open: bool,
}

fn open() -> bool {
    true
}

async fn dispute(State(shared): App, Json(dispute): Json<Dispute>) -> Result<StatusCode, Refused> {
    let (mut state, now_ms) = shared.now();
    let at = state.payment_named(&dispute.payment);
    let at = at.ok_or_else(|| Refused(StatusCode::NOT_FOUND, format!("no payment '{}'", dispute.payment)))?;
    state.dispute(at, dispute.open, now_ms);
    Ok(StatusCode::NO_CONTENT)
}

async fn set_webhook(State(shared): App, Json(webhook): Json<Option<Webhook>>) -> StatusCode {
    shared.lock().webhook = webhook.map(Arc::new);
    StatusCode::NO_CONTENT
}

async fn report(State(shared): App, Query(query): Query<ReportQuery>) -> Result<Response, Refused> {
    let csv = settlement::report(&shared, &query).map_err(|error| Refused(StatusCode::BAD_REQUEST, error))?;
    Ok(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], csv).into_response())
}
