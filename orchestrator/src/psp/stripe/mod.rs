//! Stripe's refunds over HTTP.
//!
//! - create: `POST /v1/refunds` with the intent's stored bytes and stored key, nothing else. The bytes come from `encode`, once, at
//!   submit; every later create repeats them, on whatever replica and version.
//! - lookup: our refund by its id once that is known, else among all refunds of the payment by `metadata[intent_id]` (`lookup`).
//!
//! `transport` sends and bounds; `answer` says what an answer means; `body` reads JSON. Nothing is kept between calls but idle
//! connections. Left out: cancelling a refund, webhooks, and the pin of an API version (the account's own version answers).

mod answer;
mod body;
mod config;
mod encode;
mod lookup;
mod retry_after;
mod transport;

pub use config::{StripeConfig, StripeConfigError};

use super::{CreateBody, CreateCall, EncodeError, LookupCall, Provider};
use async_trait::async_trait;
use jobs::refund::capabilities::WireAmount;
use jobs::refund::outcome::Outcome;
use tokio::time::timeout;
use transport::Transport;

/// The adapter for one Stripe platform key; accounts are named per call.
#[derive(Debug)]
pub struct StripeProvider {
    transport: Transport,
    wire_amounts: Vec<WireAmount>,
}

impl StripeProvider {
    /// Checks the configuration; connects to nothing yet.
    pub fn new(config: StripeConfig) -> Result<Self, StripeConfigError> {
        Ok(Self { transport: Transport::new(&config)?, wire_amounts: config.wire_amounts })
    }
}

#[async_trait]
impl Provider for StripeProvider {
    fn encode_create(&self, body: &CreateBody<'_>) -> Result<Vec<u8>, EncodeError> {
        encode::create(body, &self.wire_amounts)
    }

    async fn create(&self, call: CreateCall<'_>) -> Outcome {
        let intent = call.intent;
        let request = match self.transport.create_request(intent) {
            Ok(request) => request,
            Err(reason) => return answer::nothing_sent(reason),
        };
        match timeout(call.time_limit, self.transport.send(request, transport::OBJECT_MAX)).await {
            Ok(Ok(answer)) => answer::of_create(&answer, &intent.intent_id, &self.wire_amounts),
            Ok(Err(failure)) => failure.into(),
            Err(_elapsed) => Outcome::Unknown { reason: format!("no answer within {:?}", call.time_limit) },
        }
    }

    async fn lookup(&self, call: LookupCall<'_>) -> Outcome {
        let lookup = lookup::Lookup::new(&self.transport, call.intent, &self.wire_amounts);
        match timeout(call.time_limit, lookup.run()).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Outcome::Unknown { reason: format!("no complete reading within {:?}", call.time_limit) },
        }
    }
}
