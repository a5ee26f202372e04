//! What surrounds every request: an id to find it by, and an end to waiting.

use super::ApiState;
use super::problem::Problem;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

const REQUEST_ID: &str = "x-request-id";
const REQUEST_ID_LENGTH_MAX: usize = 64;

/// Gives the request an id, answers when it takes too long, and logs failures under that id.
pub async fn frame(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let sent = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let id = match sent.filter(|id| id.len() <= REQUEST_ID_LENGTH_MAX && jobs::ids::check_identifier("id", id).is_ok())
    {
        Some(id) => id.to_owned(),
        None => (state.new_id)().to_string(),
    };
    let span = tracing::info_span!("request", id, method = %request.method(), path = request.uri().path());
    let answer = tokio::time::timeout(state.request_timeout, next.run(request)).instrument(span).await;
    let mut response = answer.unwrap_or_else(|_| too_slow().into_response());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

fn too_slow() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "request_timeout",
        "The request took too long",
        "whether it took effect is not known: send the same request again, with the same intent_id or Idempotency-Key",
    )
}

/// Nothing is at this path.
pub async fn unknown_path(uri: Uri) -> Problem {
    let detail = format!(
        "there is nothing at {}: paths start with /v1/refunds, /v1/payments, /v1/ledger or /v1/psps",
        uri.path()
    );
    Problem::new(StatusCode::NOT_FOUND, "path_unknown", "No such path", detail)
}

/// The path takes other methods.
pub async fn unknown_method(uri: Uri) -> Problem {
    let detail = format!("{} takes other methods: the header allow names them", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "The path does not take this method", detail)
}
