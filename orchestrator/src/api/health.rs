//! `/healthz`: the process answers. `/readyz`: it takes work, or why not. `/metrics`: Prometheus text.

use super::ApiState;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longer than this and callers suffer too.
const DATABASE_ANSWER_MAX: Duration = Duration::from_secs(1);

pub async fn healthz() -> &'static str {
    "ok\n"
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyView {
    pub ready: bool,
    /// Why not, one sentence each.
    pub reasons: Vec<String>,
}

pub async fn readyz(State(state): State<ApiState>) -> Response {
    let mut reasons = (state.readiness)();
    match tokio::time::timeout(DATABASE_ANSWER_MAX, state.store.now()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => reasons.push(error.to_string()),
        Err(_) => reasons.push("the database did not answer within a second".to_owned()),
    }
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(ReadyView { ready: reasons.is_empty(), reasons })).into_response()
}

pub async fn metrics(State(state): State<ApiState>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (state.render_metrics)())
}
