//! A provider in memory: the executable twin of Stripe's behaviour, with its own book.
//!
//! It is what "at most one refund for an intent" is judged by in tests and simulation, so it believes nothing it is told: it
//! executes what the stored bytes say, honours a key by its own clock and forgets it after its lifetime, and counts refunds itself.
//! Each intent has a queue of scripts for its next creates and lookups; without one a call simply works. It keeps its book across
//! the crash of any replica and loses it with the process. Left out: money moving at the provider, webhooks and settlement.

mod book;
mod made;
mod script;

pub use script::{Counters, Executes, LookupScript, Script, Tells};

use super::{CreateBody, CreateCall, EncodeError, LookupCall, Provider};
use crate::clock::Clock;
use async_trait::async_trait;
use book::{Book, Reply};
use jobs::ids::IntentId;
use jobs::money::Money;
use jobs::refund::outcome::{Outcome, PspRefund};
use jobs::refund::state::PspStatus;
use made::Order;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// The provider; clones of the `Arc` around it are replicas calling the same provider.
#[derive(Debug)]
pub struct MemoryProvider {
    clock: Arc<dyn Clock>,
    key_lifetime: Duration,
    /// How long every answer takes; creates execute on arrival.
    latency: Duration,
    book: Mutex<Book>,
    released: Notify,
}

impl MemoryProvider {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, key_lifetime: Duration) -> Self {
        let book = Mutex::new(Book::default());
        Self { clock, key_lifetime, latency: Duration::ZERO, book, released: Notify::new() }
    }

    #[must_use]
    pub fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Limits what can be refunded of a payment; payments never added have no limit.
    pub fn add_payment(&self, psp_account: &str, psp_payment_ref: &str, captured: Money) {
        self.book().made.limit(psp_account, psp_payment_ref, captured);
    }

    /// Scripts the next create of the intent that has no script yet.
    pub fn script(&self, intent_id: &IntentId, script: Script) {
        self.book().create_scripts.entry(intent_id.clone()).or_default().push_back(script);
    }

    /// Scripts the next lookup of the intent that has no script yet.
    pub fn script_lookup(&self, intent_id: &IntentId, script: LookupScript) {
        self.book().lookup_scripts.entry(intent_id.clone()).or_default().push_back(script);
    }

    /// Lets everything of the intent go on that was held: creates execute, callers that still wait are answered.
    pub fn release(&self, intent_id: &IntentId) {
        self.book().release(intent_id, self.clock.wall());
        self.released.notify_waiters();
    }

    /// Sets what the intent's refunds have come to at the provider.
    pub fn decide(&self, intent_id: &IntentId, status: PspStatus, reason: Option<&str>) {
        self.now().made.decide(intent_id, status, reason);
    }

    #[must_use]
    pub fn counters(&self, intent_id: &IntentId) -> Counters {
        self.now().counters.get(intent_id).copied().unwrap_or_default()
    }

    /// Every refund made for the intent, shown by lookups or not.
    #[must_use]
    pub fn refunds(&self, intent_id: &IntentId) -> Vec<PspRefund> {
        self.now().made.of(intent_id)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The book with everything in it that is due.
    fn now(&self) -> MutexGuard<'_, Book> {
        let mut book = self.book();
        book.apply_due(self.clock.wall());
        book
    }

    /// Waits for the answer of a held call.
    async fn await_release(&self, number: u64) -> Outcome {
        loop {
            let released = self.released.notified();
            tokio::pin!(released);
            // From here on no release is missed.
            released.as_mut().enable();
            if let Some(answer) = self.book().take_answer(number) {
                return answer;
            }
            released.await;
        }
    }

    /// The reply after the provider's latency, or unknown once the caller's time is up.
    async fn deliver(&self, reply: Reply, time_limit: Duration) -> Outcome {
        let held = match reply {
            Reply::Wait(number) => Some(number),
            Reply::Now(_) => None,
        };
        let answered = timeout(time_limit, async {
            if !self.latency.is_zero() {
                sleep(self.latency).await;
            }
            match reply {
                Reply::Now(outcome) => outcome,
                Reply::Wait(number) => self.await_release(number).await,
            }
        });
        // A caller that is dropped while it waits gives up as well.
        let waits = GiveUp { provider: self, held };
        let outcome = answered
            .await
            .unwrap_or_else(|_elapsed| Outcome::Unknown { reason: format!("no answer within {time_limit:?}") });
        drop(waits);
        outcome
    }
}

/// Tells the book that a held call has no caller any more.
struct GiveUp<'a> {
    provider: &'a MemoryProvider,
    held: Option<u64>,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.held {
            self.provider.book().give_up(number);
        }
    }
}

#[async_trait]
impl Provider for MemoryProvider {
    fn encode_create(&self, body: &CreateBody<'_>) -> Result<Vec<u8>, EncodeError> {
        if !body.amount.is_positive() {
            return Err(EncodeError(format!("{} can not be refunded: send an amount above zero", body.amount)));
        }
        let order = Order {
            intent_id: body.intent_id.clone(),
            psp_payment_ref: body.psp_payment_ref.to_owned(),
            amount: body.amount,
            refund_reason: body.refund_reason.map(str::to_owned),
        };
        serde_json::to_vec(&order).map_err(|error| EncodeError(error.to_string()))
    }

    async fn create(&self, call: CreateCall<'_>) -> Outcome {
        let lifetime = book::time_delta(self.key_lifetime);
        let reply = self.book().create(call.intent, lifetime, self.clock.wall());
        self.deliver(reply, call.time_limit).await
    }

    async fn lookup(&self, call: LookupCall<'_>) -> Outcome {
        let reply = self.book().lookup(call.intent, self.clock.wall());
        let held = matches!(reply, Reply::Wait(_));
        match self.deliver(reply, call.time_limit).await {
            // A held lookup reads when it is released.
            Outcome::Absent if held => self.now().made.read(call.intent, self.clock.wall()),
            outcome => outcome,
        }
    }
}
