//! What makes sending a create again dangerous: forgotten keys, lists that lag, creates that execute late, refusals that mean "done".
//!
//! The worker's own loops run on memory implementations under paused time, so days pass in milliseconds. The provider judges: it
//! honours keys by its own clock and counts what it executed.

use chrono::{DateTime, TimeDelta, Utc};
use jobs::ids::{IntentId, PaymentId};
use jobs::money::Money;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::intent::AttemptKind;
use jobs::refund::state::State;
use orchestrator::clock::{Clock, SimulatedClock};
use orchestrator::lease::keeper::SessionIds;
use orchestrator::lease::{LeaseParameters, MemoryLeases, SessionKeeper};
use orchestrator::metrics::Metrics;
use orchestrator::psp::memory::{LookupScript, MemoryProvider, Script};
use orchestrator::psp::{CreateBody, Provider};
use orchestrator::randomness::Randomness;
use orchestrator::store::Store;
use orchestrator::store::memory::MemoryStore;
use orchestrator::store::read::Story;
use orchestrator::store::submit::{NewIntent, NewPayment};
use orchestrator::work::{PspLink, Worker, WorkerOptions, WorkerParts};
use rand::SeedableRng;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const CAPTURED: i64 = 1_000;

/// One history: what the provider does, and what must come of it.
struct History {
    /// How long the provider really honours a key; we believe a day.
    keys_live: Duration,
    creates: Vec<Script>,
    lookups: Vec<LookupScript>,
    state: State,
    reason: &'static str,
    /// How many creates may be sent.
    sent: u64,
    transfers: usize,
}

fn intent_id() -> IntentId {
    IntentId::from_stored("r-1".to_owned())
}

fn euros(minor: i64) -> Money {
    Money { minor, currency: "EUR".parse().unwrap() }
}

/// Runs the whole captured amount's refund until it is final or parked; it must have been executed exactly once.
async fn check(history: History) -> Story {
    let start: DateTime<Utc> = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::following_tokio(start));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let provider = Arc::new(MemoryProvider::new(clock.clone(), history.keys_live));
    provider.add_payment("a", "pi_1", euros(CAPTURED));
    history.creates.into_iter().for_each(|script| provider.script(&intent_id(), script));
    history.lookups.into_iter().for_each(|script| provider.script_lookup(&intent_id(), script));
    submit(store.as_ref(), provider.as_ref()).await;
    let story = run_until_settled(&clock, &store, &provider).await;
    let counters = provider.counters(&intent_id());
    assert_eq!(counters.executed, 1, "{counters:?} {story:#?}");
    assert_eq!(counters.creates, history.sent, "{counters:?} {story:#?}");
    assert_eq!(story.intent.state, history.state, "{story:#?}");
    let reason = story.intent.state_reason.as_deref().unwrap_or_default();
    assert!(reason.contains(history.reason), "{reason}");
    assert_eq!(story.transfers.len(), history.transfers, "{story:#?}");
    let reserved = if history.state == State::NeedsReview { CAPTURED } else { 0 };
    assert_eq!(story.payment.reserved_minor, reserved, "{story:#?}");
    let mut creates = story.attempts.iter().filter(|attempt| attempt.kind == AttemptKind::Create);
    let first = creates.next().unwrap().key_expires_at;
    for resend in creates {
        assert!(resend.grounds.is_some() && resend.key_expires_at == first, "{resend:?}");
    }
    story
}

async fn run_until_settled(clock: &Arc<dyn Clock>, store: &Arc<dyn Store>, provider: &Arc<MemoryProvider>) -> Story {
    let keeper = Arc::new(SessionKeeper::new(
        Arc::new(MemoryLeases::new(clock.clone())),
        clock.clone(),
        LeaseParameters::default(),
        "test".to_owned(),
        Metrics::discarded(),
        SessionIds::new(rand::rngs::StdRng::seed_from_u64(1)),
    ));
    let link = PspLink {
        psp: "acme".to_owned(),
        account: "a".to_owned(),
        provider: provider.clone(),
        capabilities: Capabilities::stripe(),
    };
    let worker = Worker::new(WorkerParts {
        store: store.clone(),
        keeper: keeper.clone(),
        links: vec![link],
        clock: clock.clone(),
        randomness: Arc::new(Randomness::from_seed(1)),
        metrics: Metrics::discarded(),
        wake: Default::default(),
        options: WorkerOptions { poll: Duration::from_secs(1), ..WorkerOptions::default() },
    });
    let (stop, stopped) = watch::channel(false);
    let keeper_stopped = stopped.clone();
    let keeping = tokio::spawn(async move { keeper.run(keeper_stopped).await });
    let working = tokio::spawn(worker.run(stopped));
    let settled = tokio::time::timeout(20 * DAY, async {
        loop {
            let story = store.story(&intent_id()).await.unwrap().unwrap();
            if story.intent.state.is_final() || story.intent.state == State::NeedsReview {
                return story;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let story = settled.await.expect("the refund neither ended nor was parked");
    stop.send_replace(true);
    working.await.unwrap();
    keeping.await.unwrap();
    story
}

async fn submit(store: &dyn Store, provider: &dyn Provider) {
    let payment_id = PaymentId::from_stored("p-1".to_owned());
    let payment = NewPayment {
        payment_id: payment_id.clone(),
        psp: "acme".to_owned(),
        psp_account: "a".to_owned(),
        psp_payment_ref: "pi_1".to_owned(),
        merchant_reference: None,
        captured: euros(CAPTURED),
        charged_back_minor: 0,
    };
    assert_eq!(store.import_payments(&[payment]).await.unwrap().len(), 1);
    let intent_id = intent_id();
    let body =
        CreateBody { intent_id: &intent_id, psp_payment_ref: "pi_1", amount: euros(CAPTURED), refund_reason: None };
    let create_body = provider.encode_create(&body).unwrap();
    let intent = NewIntent {
        idempotency_key: jobs::refund::key::idempotency_key("test", "a", &intent_id),
        intent_id,
        payment_id,
        amount: euros(CAPTURED),
        merchant_reference: None,
        refund_reason: None,
        psp: "acme".to_owned(),
        psp_account: "a".to_owned(),
        psp_payment_ref: "pi_1".to_owned(),
        create_body,
        due_at: None,
    };
    assert_eq!(store.submit(&[intent]).await.unwrap().len(), 1);
}

const POSTED: History = History {
    keys_live: DAY,
    creates: Vec::new(),
    lookups: Vec::new(),
    state: State::Succeeded,
    reason: "",
    sent: 1,
    transfers: 1,
};

/// No lookup is answered at 0 s, 5 s, 30 s, 2 min, 10 min, 1 h and 6 h; the next comes a day later.
fn silent_for_a_day() -> Vec<LookupScript> {
    vec![LookupScript::BreaksOff; 7]
}

#[tokio::test(start_paused = true)]
async fn once_the_key_may_be_forgotten_an_absent_refund_is_for_a_person() {
    check(History {
        creates: vec![Script::lagging(9 * DAY)],
        lookups: silent_for_a_day(),
        state: State::NeedsReview,
        reason: "absent_no_resend",
        transfers: 0,
        ..POSTED
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn once_the_key_may_be_forgotten_a_found_refund_is_posted() {
    check(History { creates: vec![Script::answer_lost()], lookups: silent_for_a_day(), ..POSTED }).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_lags_within_its_window_is_waited_for() {
    check(History { creates: vec![Script::lagging(4 * MINUTE)], ..POSTED }).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_lags_beyond_its_window_costs_a_resend_that_the_key_answers() {
    check(History { creates: vec![Script::lagging(2 * HOUR)], sent: 2, ..POSTED }).await;
}

#[tokio::test(start_paused = true)]
async fn a_create_that_executes_long_after_it_was_given_up_is_found() {
    // The resend meets the first create in flight, which is no answer; then the first one executes.
    check(History { creates: vec![Script::late(12 * MINUTE)], sent: 2, ..POSTED }).await;
}

#[tokio::test(start_paused = true)]
async fn a_429_after_an_unknown_leaves_it_unknown() {
    // Were it recorded again, the third create would start without grounds.
    check(History { creates: vec![Script::dropped(), Script::not_executed(None)], sent: 3, ..POSTED }).await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_because_the_first_create_executed_is_our_refund() {
    // The provider breaks its promise about keys, and only the payment's limit stops the second refund.
    let story =
        check(History { keys_live: MINUTE, creates: vec![Script::lagging(7 * MINUTE)], sent: 2, ..POSTED }).await;
    let told: Vec<&str> = story.attempts.iter().map(|a| a.outcome.as_ref().unwrap().outcome.as_str()).collect();
    assert!(told.contains(&"rejected") && told.last() == Some(&"found"), "{told:?}");
}
