//! Calls to payment service providers. An answer is an [`Outcome`]; nothing here retries, and nothing here decides.
//!
//! A call has no memory: what it told is in the outcome, and a call cut off by a crash leaves nothing behind on our side. Adapters
//! lean to the safe side: what is not proved executed, refused or not executed is unknown.

pub mod memory;
pub mod stripe;

use async_trait::async_trait;
use jobs::money::Money;
use jobs::refund::intent::Intent;
use jobs::refund::outcome::Outcome;
use std::sync::Once;
use std::time::Duration;

/// A create, exactly as stored with the intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateCall<'a> {
    pub intent: &'a Intent,
    /// Abort after this long, whatever the provider's own timeout is.
    pub time_limit: Duration,
}

/// A lookup of our refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupCall<'a> {
    pub intent: &'a Intent,
    pub time_limit: Duration,
}

/// What an adapter needs to derive the stored body of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateBody<'a> {
    pub intent_id: &'a jobs::ids::IntentId,
    pub psp_payment_ref: &'a str,
    pub amount: Money,
    pub refund_reason: Option<&'a str>,
}

/// The amount or reason can not be sent to this provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(pub String);

/// A provider's adapter.
#[async_trait]
pub trait Provider: Send + Sync + std::fmt::Debug {
    /// The bytes every create of this intent will carry.
    fn encode_create(&self, body: &CreateBody<'_>) -> Result<Vec<u8>, EncodeError>;

    /// Accepted, rejected, not executed or unknown.
    async fn create(&self, call: CreateCall<'_>) -> Outcome;

    /// Found, absent, not executed or unknown. Absent only after a complete reading.
    async fn lookup(&self, call: LookupCall<'_>) -> Outcome;
}

/// Chooses the process' TLS implementation, once; without one no client can be built. A choice made before stays.
pub fn install_tls_provider() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let chosen = rustls::crypto::ring::default_provider().install_default();
        if chosen.is_err() {
            tracing::debug!("a TLS provider was chosen before; it stays");
        }
    });
}
