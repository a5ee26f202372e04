//! What only the memory provider can be told: hold calls, release them, and decide pending refunds. Time is paused, so a wait that
//! nothing ends is over at once.

use super::stages::KEY_LIFETIME;
use super::{create, intent_of, is_unknown, lookup};
use chrono::DateTime;
use jobs::money::Money;
use jobs::refund::intent::Intent;
use jobs::refund::outcome::Outcome;
use jobs::refund::state::PspStatus;
use orchestrator::clock::SimulatedClock;
use orchestrator::psp::memory::{Counters, LookupScript, MemoryProvider, Script};
use orchestrator::psp::{CreateBody, Provider};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::task::yield_now;

fn provider() -> (Arc<MemoryProvider>, Intent) {
    let clock = Arc::new(SimulatedClock::new(DateTime::UNIX_EPOCH));
    let provider = Arc::new(MemoryProvider::new(clock, KEY_LIFETIME));
    let intent = intent_of(&*provider, "r1", 1_000, "EUR");
    (provider, intent)
}

/// A create in a task of its own that has reached the provider.
async fn open_create(provider: &Arc<MemoryProvider>, intent: &Intent) -> JoinHandle<Outcome> {
    let (caller, own) = (provider.clone(), intent.clone());
    let before = provider.counters(&intent.intent_id).creates;
    let task = tokio::spawn(async move { create(&*caller, &own).await });
    while provider.counters(&intent.intent_id).creates == before {
        yield_now().await;
    }
    task
}

#[tokio::test(start_paused = true)]
async fn a_held_create_has_executed_and_is_answered_when_released() {
    let (provider, intent) = provider();
    provider.script(&intent.intent_id, Script::held());
    let task = open_create(&provider, &intent).await;
    assert!(matches!(lookup(&*provider, &intent).await, Outcome::Found { .. }));
    provider.release(&intent.intent_id);
    assert!(matches!(task.await.unwrap(), Outcome::Accepted { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_held_back_executes_at_the_release_even_when_its_caller_is_gone() {
    for gone in [false, true] {
        let (provider, intent) = provider();
        provider.script(&intent.intent_id, Script::held_back());
        let task = open_create(&provider, &intent).await;
        assert_eq!(lookup(&*provider, &intent).await, Outcome::Absent);
        if gone {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            provider.release(&intent.intent_id);
        } else {
            provider.release(&intent.intent_id);
            assert!(matches!(task.await.unwrap(), Outcome::Accepted { .. }));
        }
        assert!(matches!(lookup(&*provider, &intent).await, Outcome::Found { .. }), "gone: {gone}");
        provider.release(&intent.intent_id);
        assert_eq!(provider.counters(&intent.intent_id).executed, 1, "a second release finds nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_never_released_ends_at_its_limit() {
    let (provider, intent) = provider();
    provider.script(&intent.intent_id, Script::held());
    assert!(is_unknown(&create(&*provider, &intent).await));
    provider.script_lookup(&intent.intent_id, LookupScript::Held);
    assert!(is_unknown(&lookup(&*provider, &intent).await));
    provider.release(&intent.intent_id);
    assert!(matches!(create(&*provider, &intent).await, Outcome::Accepted { .. }), "the key repeats the result");
    let expected = Counters { creates: 2, executed: 1, repeated: 1, lookups: 1 };
    assert_eq!(provider.counters(&intent.intent_id), expected);
}

#[tokio::test(start_paused = true)]
async fn a_held_lookup_reads_when_it_is_released() {
    let (provider, intent) = provider();
    provider.script_lookup(&intent.intent_id, LookupScript::Held);
    let (caller, own) = (provider.clone(), intent.clone());
    let reading = tokio::spawn(async move { lookup(&*caller, &own).await });
    while provider.counters(&intent.intent_id).lookups == 0 {
        yield_now().await;
    }
    create(&*provider, &intent).await;
    provider.release(&intent.intent_id);
    assert!(matches!(reading.await.unwrap(), Outcome::Found { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_success_can_be_taken_back_and_frees_its_amount() {
    let (provider, intent) = provider();
    provider.add_payment(&intent.psp_account, &intent.psp_payment_ref, intent.amount);
    create(&*provider, &intent).await;
    let again = Intent { idempotency_key: "another-key".to_owned(), ..intent.clone() };
    assert!(matches!(create(&*provider, &again).await, Outcome::Rejected { .. }));
    provider.decide(&intent.intent_id, PspStatus::Failed, Some("expired_or_canceled_card"));
    match lookup(&*provider, &intent).await {
        Outcome::Found { refunds } => {
            assert_eq!(
                (refunds[0].status, refunds[0].reason.as_deref()),
                (PspStatus::Failed, Some("expired_or_canceled_card"))
            );
        }
        other => panic!("{other:?}"),
    }
    let third = Intent { idempotency_key: "third-key".to_owned(), ..intent.clone() };
    assert!(matches!(create(&*provider, &third).await, Outcome::Accepted { .. }));
    assert_eq!(provider.refunds(&intent.intent_id).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_amount_than_asked_for_is_shown_as_it_is() {
    let (provider, intent) = provider();
    let other = Money::new(999, intent.amount.currency);
    provider.script(&intent.intent_id, Script { makes: Some(other), ..Script::default() });
    assert!(matches!(create(&*provider, &intent).await, Outcome::Accepted { refund } if refund.amount == other));
}

#[tokio::test(start_paused = true)]
async fn the_provider_does_what_the_bytes_say() {
    let (provider, intent) = provider();
    let spoiled = Intent { create_body: b"nothing".to_vec(), ..intent.clone() };
    assert!(matches!(create(&*provider, &spoiled).await, Outcome::Rejected { .. }));
    let lying = Intent { amount: Money::new(7, intent.amount.currency), ..intent.clone() };
    assert!(matches!(create(&*provider, &lying).await, Outcome::Accepted { refund } if refund.amount == intent.amount));
    let zero = Money::zero(intent.amount.currency);
    let body = CreateBody { intent_id: &intent.intent_id, psp_payment_ref: "pi_1", amount: zero, refund_reason: None };
    assert!(provider.encode_create(&body).is_err());
}

#[tokio::test(start_paused = true)]
async fn answers_take_as_long_as_the_provider_is_slow() {
    let (_, intent) = provider();
    let clock = Arc::new(SimulatedClock::new(DateTime::UNIX_EPOCH));
    let slow = MemoryProvider::new(clock, KEY_LIFETIME).with_latency(Duration::from_secs(45));
    assert!(is_unknown(&create(&slow, &intent).await), "the caller's limit is shorter");
    assert_eq!(slow.counters(&intent.intent_id).executed, 1);
}
