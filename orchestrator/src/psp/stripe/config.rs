//! What a Stripe adapter is built from, and why it could not be.

use jobs::refund::capabilities::{Capabilities, WireAmount};
use secrecy::SecretString;
use std::time::Duration;

/// Settings of one adapter. Every time is further bounded by the time limit of the call.
#[derive(Debug, Clone)]
pub struct StripeConfig {
    /// Without the `/v1`.
    pub base_url: String,
    pub api_key: SecretString,
    pub connect_timeout: Duration,
    /// From the call's start to the answer's headers.
    pub answer_timeout: Duration,
    /// From the headers to the end of the body.
    pub body_timeout: Duration,
    /// Only a proxy named here is used; the environment's are ignored.
    pub proxy: Option<String>,
    /// Connections kept open between calls.
    pub idle_connections_max: usize,
    pub wire_amounts: Vec<WireAmount>,
}

impl StripeConfig {
    /// The usual settings for this address and key.
    #[must_use]
    pub fn new(base_url: impl Into<String>, api_key: SecretString) -> Self {
        Self {
            base_url: base_url.into(),
            api_key,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(15),
            proxy: None,
            idle_connections_max: 10_000,
            wire_amounts: Capabilities::stripe().wire_amounts,
        }
    }
}

/// Why no adapter could be built. None of them repeats the key.
#[derive(Debug, thiserror::Error)]
pub enum StripeConfigError {
    #[error(
        "the base address {url:?} is not an http or https address without query: set it such as https://api.stripe.com"
    )]
    BaseUrl { url: String },
    #[error("a live key would travel unencrypted to {url:?}: use https")]
    LiveKeyInClear { url: String },
    #[error("the API key is empty or holds characters that no header can carry")]
    ApiKey,
    #[error("the proxy address can not be used")]
    Proxy(#[source] reqwest::Error),
    #[error("the HTTP client can not be built")]
    Client(#[source] reqwest::Error),
}
