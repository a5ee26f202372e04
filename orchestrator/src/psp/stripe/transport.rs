//! One request, one answer: HTTP/1.1 over kept connections, no redirect, no retry, no proxy from the environment.
//!
//! A failure says whether bytes of the request may have left. Only a connection that never came to be proves that none did; the
//! client below repeats a request by itself in one case only, when a kept connection was closed before any byte was written.
//!
//! An open call costs some 27 KiB resident on its first connection: 8 KiB each for hyper's read and write buffers and 9 KiB for its
//! connecting future, none of which reqwest lets us set; our own future is 1.1 KiB.

use super::answer;
use super::config::{StripeConfig, StripeConfigError};
use super::retry_after;
use crate::psp::install_tls_provider;
use jobs::refund::intent::Intent;
use jobs::refund::outcome::Outcome;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url};
use secrecy::ExposeSecret;
use std::error::Error;
use std::time::Duration;
use tokio::time::timeout;

/// Largest answer that shows one object; a refund is under a kilobyte, its metadata at most some 30.
pub(super) const OBJECT_MAX: usize = 1024 * 1024;

/// Shorter than servers keep idle connections, so that a call seldom meets one that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const STRIPE_ACCOUNT: HeaderName = HeaderName::from_static("stripe-account");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    refunds: Url,
    /// Marked sensitive, so that nothing prints it.
    authorization: HeaderValue,
    answer_timeout: Duration,
    body_timeout: Duration,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after_ms: Option<u64>,
    /// Stripe says this is the stored answer to an earlier call with the same key.
    pub(super) replayed: bool,
    pub(super) body: Vec<u8>,
}

/// No whole answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Not one byte of the request left.
    NotSent(String),
    /// Anything may have happened.
    Open(String),
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotSent(reason) => answer::nothing_sent(reason),
            Failure::Open(reason) => Self::Unknown { reason },
        }
    }
}

impl Transport {
    pub(super) fn new(config: &StripeConfig) -> Result<Self, StripeConfigError> {
        install_tls_provider();
        let api_key = config.api_key.expose_secret();
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {api_key}")).map_err(|_| StripeConfigError::ApiKey)?;
        authorization.set_sensitive(true);
        if api_key.trim().is_empty() {
            return Err(StripeConfigError::ApiKey);
        }
        let refunds = refunds_url(&config.base_url)?;
        if refunds.scheme() == "http" && api_key.contains("_live_") {
            return Err(StripeConfigError::LiveKeyInClear { url: config.base_url.clone() });
        }
        let mut builder = Client::builder()
            .user_agent(concat!("orchestrator/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            // With none allowed the client does not even keep a copy to send again.
            .retry(reqwest::retry::never().max_retries_per_request(0))
            .no_proxy()
            .referer(false)
            .tcp_nodelay(true)
            .connect_timeout(config.connect_timeout)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(config.idle_connections_max);
        if let Some(proxy) = &config.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(StripeConfigError::Proxy)?);
        }
        Ok(Self {
            client: builder.build().map_err(StripeConfigError::Client)?,
            refunds,
            authorization,
            answer_timeout: config.answer_timeout,
            body_timeout: config.body_timeout,
        })
    }

    /// The one request every create of this intent makes. An error names what no header can carry.
    pub(super) fn create_request(&self, intent: &Intent) -> Result<Request, String> {
        let key = HeaderValue::from_str(&intent.idempotency_key)
            .map_err(|_| "the idempotency key holds characters that no header can carry".to_owned())?;
        let mut request = self.request(Method::POST, self.refunds.clone(), intent)?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, FORM);
        headers.insert(IDEMPOTENCY_KEY, key);
        *request.body_mut() = Some(intent.create_body.clone().into());
        Ok(request)
    }

    /// Reads the refund with this id.
    pub(super) fn read_request(&self, refund: &str, intent: &Intent) -> Result<Request, String> {
        let mut url = self.refunds.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => drop(segments.push(refund)),
            Err(()) => return Err("the base address has no path".to_owned()),
        }
        self.request(Method::GET, url, intent)
    }

    /// Lists refunds by these parameters.
    pub(super) fn list_request(&self, parameters: &[(&str, &str)], intent: &Intent) -> Result<Request, String> {
        let mut url = self.refunds.clone();
        url.query_pairs_mut().extend_pairs(parameters);
        self.request(Method::GET, url, intent)
    }

    fn request(&self, method: Method, url: Url, intent: &Intent) -> Result<Request, String> {
        let mut request = Request::new(method, url);
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, self.authorization.clone());
        if intent.psp_account.starts_with("acct_") {
            let account = HeaderValue::from_str(&intent.psp_account)
                .map_err(|_| "the account holds characters that no header can carry".to_owned())?;
            headers.insert(STRIPE_ACCOUNT, account);
        }
        Ok(request)
    }

    /// Sends it once and reads the answer to its end, or to `body_max`.
    pub(super) async fn send(&self, request: Request, body_max: usize) -> Result<Answer, Failure> {
        let response = match timeout(self.answer_timeout, self.client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() => return Err(Failure::NotSent(chain(error))),
            Ok(Err(error)) => return Err(Failure::Open(chain(error))),
            Err(_elapsed) => return Err(Failure::Open(format!("no answer within {:?}", self.answer_timeout))),
        };
        let (status, headers) = (response.status().as_u16(), response.headers());
        let retry_after_ms = retry_after::read_ms(headers);
        let replayed = headers.get(IDEMPOTENT_REPLAYED).is_some_and(|value| value == "true");
        let body = match timeout(self.body_timeout, read_body(response, body_max)).await {
            Ok(body) => body?,
            Err(_elapsed) => {
                return Err(Failure::Open(format!("{status}, body not whole within {:?}", self.body_timeout)));
            }
        };
        Ok(Answer { status, retry_after_ms, replayed, body })
    }
}

fn refunds_url(base: &str) -> Result<Url, StripeConfigError> {
    let error = || StripeConfigError::BaseUrl { url: base.to_owned() };
    let url = Url::parse(base).map_err(|_| error())?;
    let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !matches!(url.scheme(), "http" | "https") || !plain {
        return Err(error());
    }
    Url::parse(&format!("{}/v1/refunds", base.trim_end_matches('/'))).map_err(|_| error())
}

async fn read_body(mut response: Response, body_max: usize) -> Result<Vec<u8>, Failure> {
    let status = response.status().as_u16();
    let too_long = || Failure::Open(format!("{status}, body longer than {body_max} bytes"));
    let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    if announced > body_max {
        return Err(too_long());
    }
    let mut body = Vec::with_capacity(announced);
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if chunk.len() > body_max - body.len() => return Err(too_long()),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(Failure::Open(format!("{status}, {}", chain(error)))),
        }
    }
}

/// The error with its sources, without the address.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    answer::bounded(&text)
}
