//! Bodies, queries and paths as typed values; what does not fit is a problem that says where.

use super::problem::Problem;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

/// Longest free text on record, such as a reason.
pub const TEXT_LENGTH_MAX: usize = 500;

/// A JSON body.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !says_json(request.headers()) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not_json",
                "The body is not JSON",
                "send JSON with the header content-type: application/json",
            ));
        }
        let bytes =
            axum::body::Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "body_too_large",
                    "The body is too large",
                    "send less in one request",
                ),
                _ => Problem::bad_request("invalid_body", rejection.body_text()),
            })?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Problem::bad_request("invalid_body", error.to_string()))
    }
}

fn says_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Query parameters.
#[derive(Debug)]
pub struct QueryOf<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|error| Problem::bad_request("invalid_query", error.body_text()))
    }
}

/// The one name in a path.
#[derive(Debug)]
pub struct NameInPath(pub String);

impl<S: Send + Sync> FromRequestParts<S> for NameInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(name) = path.map_err(|error| Problem::bad_request("invalid_path", error.body_text()))?;
        check_text("the id in the path", &name)?;
        Ok(Self(name))
    }
}

/// Accepts one line of free text that every database and terminal can hold.
pub fn check_text(what: &str, text: &str) -> Result<(), Problem> {
    let problem = |wrong: &str| Err(Problem::bad_request("invalid_text", format!("{what} {wrong}")));
    if text.trim().is_empty() {
        return problem("is empty: write why, in a few words");
    }
    if text.chars().count() > TEXT_LENGTH_MAX {
        return problem(&format!("has more than {TEXT_LENGTH_MAX} characters: shorten it"));
    }
    if text.chars().any(char::is_control) {
        return problem("holds control characters: write one line of plain text");
    }
    Ok(())
}

/// A header's text, if it was sent.
pub fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value
        .to_str()
        .map_err(|_| Problem::bad_request("invalid_header", format!("header {name} is not plain text")))?;
    Ok(Some(text))
}

/// A body that only says why.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithReason {
    pub reason: String,
}

impl WithReason {
    pub fn check(self) -> Result<String, Problem> {
        check_text("reason", &self.reason)?;
        Ok(self.reason)
    }
}
