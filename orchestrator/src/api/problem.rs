//! Errors as RFC 9457 problem documents. `code` is stable and for programs; `detail` is for people and says what to do.

use crate::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

/// When to come back to a server whose database does not answer.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// One refusal or failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub title: &'static str,
    pub detail: String,
    /// Further members, such as the amount that could be refunded.
    pub members: Map<String, Value>,
}

impl Problem {
    #[must_use]
    pub fn new(status: StatusCode, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, title, detail: detail.into(), members: Map::new() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The request can not be read as what the path takes.
    #[must_use]
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, "The request is not valid", detail)
    }

    #[must_use]
    pub fn refund_unknown(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "refund_unknown",
            "No such refund",
            format!(
                "nothing on record has the id {id:?}: it may be an intent, PSP refund, payment, PSP payment or merchant reference"
            ),
        )
    }

    #[must_use]
    pub fn payment_unknown(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "payment_unknown",
            "No such payment",
            format!("payment {id:?} is not on record: import it with POST /v1/payments first"),
        )
    }

    #[must_use]
    pub fn overloaded() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "Too many submits wait",
            "nothing was recorded: send the same request again after a second",
        )
    }

    #[must_use]
    pub fn store_unavailable() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store_unavailable",
            "The database does not answer",
            "whether the request took effect is not known: send the same request again, with the same intent_id or Idempotency-Key",
        )
    }

    #[must_use]
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "The server failed",
            "the server's log has the cause under the request id in the header x-request-id: tell an operator",
        )
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) => {
                tracing::warn!(cause, "the database did not answer a request");
                Self::store_unavailable()
            }
            error => {
                tracing::error!(%error, "the store failed a request");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut document = self.members;
        document.insert("type".to_owned(), format!("urn:refund-orchestrator:problem:{}", self.code).into());
        document.insert("title".to_owned(), self.title.into());
        document.insert("status".to_owned(), self.status.as_u16().into());
        document.insert("code".to_owned(), self.code.into());
        document.insert("detail".to_owned(), self.detail.into());
        let body = Value::Object(document).to_string();
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_S);
        }
        response
    }
}
