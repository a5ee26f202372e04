//! A call under `/v1` as read off the wire: who calls, what is asked, with which parameters and key.

use super::Shared;
use super::credentials::account;
use crate::faults::CallKind;
use crate::ids;
use crate::state::Id;
use crate::state::keys::{KEY_LONGEST, KeyUse};
use crate::state::payments::Face;
use crate::wire::{ApiError, Form};
use axum::body::{self, Body};
use axum::http::request::Parts;
use axum::http::{Method, Request};

/// Larger bodies are refused: no call of this API comes near.
const BODY_LARGEST: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) route: Route,
    pub(crate) account: Id,
    pub(crate) form: Form,
    pub(crate) key: Option<KeyUse>,
    /// The key as the caller wrote it.
    pub(crate) key_text: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    PaymentCreate(Face),
    PaymentConfirm(String),
    PaymentRead(Face, String),
    PaymentList(Face),
    RefundCreate,
    RefundRead(String),
    RefundList,
    RefundUpdate(String),
    RefundCancel(String),
    TransactionRead(String),
    TransactionList,
}

impl Route {
    fn parse(method: &Method, path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("/v1/")?.trim_end_matches('/').split('/');
        let (collection, id, action, rest) = (parts.next()?, parts.next(), parts.next(), parts.next());
        if rest.is_some() {
            return None;
        }
        let write = match *method {
            Method::POST => true,
            Method::GET => false,
            _ => return None,
        };
        Some(match (collection, id.map(str::to_owned), action, write) {
            ("payment_intents", None, None, true) => Self::PaymentCreate(Face::Intent),
            ("payment_intents", Some(id), Some("confirm"), true) => Self::PaymentConfirm(id),
            ("payment_intents", Some(id), None, false) => Self::PaymentRead(Face::Intent, id),
            ("payment_intents", None, None, false) => Self::PaymentList(Face::Intent),
            ("charges", None, None, true) => Self::PaymentCreate(Face::Charge),
            ("charges", Some(id), None, false) => Self::PaymentRead(Face::Charge, id),
            ("charges", None, None, false) => Self::PaymentList(Face::Charge),
            ("refunds", None, None, true) => Self::RefundCreate,
            ("refunds", Some(id), None, false) => Self::RefundRead(id),
            ("refunds", None, None, false) => Self::RefundList,
            ("refunds", Some(id), None, true) => Self::RefundUpdate(id),
            ("refunds", Some(id), Some("cancel"), true) => Self::RefundCancel(id),
            ("balance_transactions", Some(id), None, false) => Self::TransactionRead(id),
            ("balance_transactions", None, None, false) => Self::TransactionList,
            _ => return None,
        })
    }

    pub(crate) fn kind(&self) -> CallKind {
        match self {
            Self::PaymentCreate(_) | Self::PaymentConfirm(_) | Self::PaymentRead(..) | Self::PaymentList(_) => {
                CallKind::Payment
            }
            Self::RefundCreate => CallKind::Create,
            Self::RefundRead(_) => CallKind::Retrieve,
            Self::RefundList => CallKind::List,
            Self::RefundUpdate(_) => CallKind::Update,
            Self::RefundCancel(_) => CallKind::Cancel,
            Self::TransactionRead(_) | Self::TransactionList => CallKind::Transaction,
        }
    }
}

impl Call {
    pub(crate) async fn read(shared: &Shared, request: Request<Body>) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let account = account(shared, &parts.headers)?;
        let path = parts.uri.path();
        let route =
            Route::parse(&parts.method, path).ok_or_else(|| ApiError::no_such_url(parts.method.as_str(), path))?;
        let form = if parts.method == Method::GET {
            Form::parse(parts.uri.query().unwrap_or_default().as_bytes())?
        } else {
            let bytes = body::to_bytes(body, BODY_LARGEST).await;
            Form::parse(&bytes.map_err(|_| ApiError::invalid("The request body is too large or was cut off."))?)?
        };
        let key_text = key(&parts)?;
        let key = key_text.as_deref().map(|key| KeyUse {
            scoped: format!("{account}/{key}").into(),
            endpoint: ids::hash(0, path),
            params: form.fingerprint(),
        });
        Ok(Self { route, account, form, key, key_text })
    }

    pub(crate) fn is_create(&self) -> bool {
        self.route == Route::RefundCreate
    }
}

/// Keys only mean something on calls that write.
fn key(parts: &Parts) -> Result<Option<Box<str>>, ApiError> {
    let Some(value) = parts.headers.get("idempotency-key").filter(|_| parts.method == Method::POST) else {
        return Ok(None);
    };
    let key = value.to_str().map_err(|_| ApiError::invalid("Idempotency keys are ASCII text."))?;
    if key.is_empty() || key.len() > KEY_LONGEST {
        let message =
            format!("Idempotency keys must be between 1 and {KEY_LONGEST} characters; this one has {}.", key.len());
        return Err(ApiError::invalid(message));
    }
    Ok(Some(key.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_told_apart() {
        let cases = [
            ("POST", "/v1/refunds", Some(Route::RefundCreate)),
            ("GET", "/v1/refunds", Some(Route::RefundList)),
            ("POST", "/v1/refunds/re_1", Some(Route::RefundUpdate("re_1".into()))),
            ("POST", "/v1/refunds/re_1/cancel", Some(Route::RefundCancel("re_1".into()))),
            ("GET", "/v1/refunds/re_1", Some(Route::RefundRead("re_1".into()))),
            ("DELETE", "/v1/refunds/re_1", None),
            ("POST", "/v1/refunds/re_1/cancel/now", None),
            ("GET", "/v2/refunds", None),
        ];
        for (method, path, expected) in cases {
            let method = Method::from_bytes(method.as_bytes()).expect("is a method");
            assert_eq!(Route::parse(&method, path), expected, "{method} {path}");
        }
    }
}
