//! Stripe's error object and the HTTP status that goes with it.

use serde::Serialize;
use std::borrow::Cow;

type Text = Cow<'static, str>;

/// An error answer. Which of them a key remembers is decided by how far the call came, not by the error.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    kind: &'static str,
    code: Option<Text>,
    message: String,
    param: Option<Text>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc_url: Option<String>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: ErrorObject<'a>,
}

impl ApiError {
    fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, code: None, message: message.into(), param: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request_error", message)
    }

    pub(crate) fn missing_param(param: &'static str) -> Self {
        Self::invalid(format!("Missing required param: {param}.")).coded("parameter_missing").on(param)
    }

    pub(crate) fn no_such(what: &str, id: &str, param: &'static str) -> Self {
        let mut error = Self::invalid(format!("No such {what}: '{id}'")).coded("resource_missing").on(param);
        error.status = 404;
        error
    }

    pub(crate) fn no_such_url(method: &str, path: &str) -> Self {
        Self::new(404, "invalid_request_error", format!("Unrecognized request URL ({method}: {path})."))
    }

    pub(crate) fn unauthorized(message: &'static str) -> Self {
        Self::new(401, "invalid_request_error", message)
    }

    pub(crate) fn rate_limited() -> Self {
        Self::new(429, "invalid_request_error", "Too many requests hit the API too quickly.").coded("rate_limit")
    }

    pub(crate) fn internal(status: u16) -> Self {
        Self::new(status, "api_error", "An unknown error occurred.")
    }

    pub(crate) fn key_reused(same_endpoint: bool) -> Self {
        let what = if same_endpoint { "parameters" } else { "endpoint" };
        let message =
            format!("Keys for idempotent requests can only be used with the same {what} they were first used with.");
        Self::new(400, "idempotency_error", message)
    }

    pub(crate) fn key_in_use() -> Self {
        let message = "There is currently another in-progress request using this idempotency key.";
        Self::new(409, "idempotency_error", message).coded("idempotency_key_in_use")
    }

    pub(crate) fn refused(status: u16, code: String, message: String) -> Self {
        let kind = if status == 402 { "card_error" } else { "invalid_request_error" };
        Self::new(status, kind, message).coded(code)
    }

    pub(crate) fn coded(mut self, code: impl Into<Text>) -> Self {
        self.code = Some(code.into());
        self
    }

    pub(crate) fn on(mut self, param: impl Into<Text>) -> Self {
        self.param = Some(param.into());
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        let Self { kind, message, .. } = self;
        let (code, param) = (self.code.as_deref(), self.param.as_deref());
        let doc_url = code.map(|code| format!("https://stripe.com/docs/error-codes/{}", code.replace('_', "-")));
        serde_json::to_vec(&Envelope { error: ErrorObject { kind, code, doc_url, message, param } }).unwrap_or_default()
    }
}
