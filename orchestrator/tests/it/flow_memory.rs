//! The worker's loops on memory implementations under paused time: what becomes of a refund under each answer.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use jobs::ids::{IntentId, PaymentId};
use jobs::money::Money;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::outcome::{Outcome, PspRefund, Rejection, RejectionClass};
use jobs::refund::state::{PspStatus, State};
use orchestrator::clock::{Clock, SimulatedClock};
use orchestrator::lease::keeper::SessionIds;
use orchestrator::lease::{LeaseParameters, MemoryLeases, SessionKeeper};
use orchestrator::metrics::Metrics;
use orchestrator::psp::{CreateBody, CreateCall, EncodeError, LookupCall, Provider};
use orchestrator::randomness::Randomness;
use orchestrator::store::Store;
use orchestrator::store::memory::MemoryStore;
use orchestrator::store::read::Story;
use orchestrator::store::submit::{NewIntent, NewPayment};
use orchestrator::work::wake::Wake;
use orchestrator::work::{PspLink, Worker, WorkerOptions, WorkerParts};
use rand::SeedableRng;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// One scripted answer: after how long, and what.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    After(Duration, Outcome),
    /// Silence until the caller gives up.
    Never,
}

/// Answers calls in the order of its script; the last answer of a kind repeats.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    pub(crate) creates: Mutex<VecDeque<Answer>>,
    lookups: Mutex<VecDeque<Answer>>,
    calls: Mutex<Vec<&'static str>>,
}

impl Scripted {
    async fn answer(&self, kind: &'static str, script: &Mutex<VecDeque<Answer>>) -> Outcome {
        self.calls.lock().unwrap().push(kind);
        let answer = {
            let mut script = script.lock().unwrap();
            if script.len() > 1 {
                script.pop_front().unwrap()
            } else {
                script.front().cloned().expect("a scripted answer")
            }
        };
        match answer {
            Answer::After(delay, outcome) => {
                tokio::time::sleep(delay).await;
                outcome
            }
            Answer::Never => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Provider for Scripted {
    fn encode_create(&self, body: &CreateBody<'_>) -> Result<Vec<u8>, EncodeError> {
        Ok(body.intent_id.as_str().as_bytes().to_vec())
    }

    async fn create(&self, _call: CreateCall<'_>) -> Outcome {
        self.answer("create", &self.creates).await
    }

    async fn lookup(&self, _call: LookupCall<'_>) -> Outcome {
        self.answer("lookup", &self.lookups).await
    }
}

fn euros(minor: i64) -> Money {
    Money { minor, currency: "EUR".parse().unwrap() }
}

fn refund(status: PspStatus) -> PspRefund {
    PspRefund { psp_refund_ref: "re_1".to_owned(), status, amount: euros(1_000), reason: Some("why".to_owned()) }
}

fn at_once(outcome: Outcome) -> Answer {
    Answer::After(Duration::ZERO, outcome)
}

pub(crate) fn accepted(status: PspStatus) -> Answer {
    at_once(Outcome::Accepted { refund: refund(status) })
}

fn found(status: PspStatus) -> Answer {
    at_once(Outcome::Found { refunds: vec![refund(status)] })
}

fn unknown() -> Answer {
    at_once(Outcome::Unknown { reason: "reset".to_owned() })
}

fn rejected(class: RejectionClass, stored_under_key: bool) -> Answer {
    let rejection = Rejection { code: "no".to_owned(), message: "not this one".to_owned(), stored_under_key, class };
    at_once(Outcome::Rejected { rejection })
}

const fn not_executed() -> Outcome {
    Outcome::NotExecuted { reason: String::new(), retry_after_ms: None }
}

/// Stripe's, with the days cut off the ladder: what is tested is its end, not its length.
pub(crate) fn capabilities() -> Capabilities {
    let mut capabilities = Capabilities::stripe();
    capabilities.unknown_ladder.truncate(6);
    capabilities
}

struct Expected {
    state: State,
    transfers: &'static [&'static str],
    calls: &'static [&'static str],
    reserved: i64,
    refunded: i64,
}

/// Runs one refund until it is final, parked or processing, and compares.
async fn check(creates: Vec<Answer>, lookups: Vec<Answer>, expected: Expected) -> Story {
    let start: DateTime<Utc> = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::following_tokio(start));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let provider = Arc::new(Scripted::default());
    provider.creates.lock().unwrap().extend(creates);
    provider.lookups.lock().unwrap().extend(lookups);
    let wake = Wake::default();
    let keeper = Arc::new(SessionKeeper::new(
        Arc::new(MemoryLeases::new(clock.clone())),
        clock.clone(),
        LeaseParameters::default(),
        "test".to_owned(),
        Metrics::discarded(),
        SessionIds::new(rand::rngs::StdRng::seed_from_u64(1)),
    ));
    let worker = Worker::new(WorkerParts {
        store: store.clone(),
        keeper: keeper.clone(),
        links: vec![PspLink {
            psp: "acme".to_owned(),
            account: "a".to_owned(),
            provider: provider.clone(),
            capabilities: capabilities(),
        }],
        clock,
        randomness: Arc::new(Randomness::from_seed(1)),
        metrics: Metrics::discarded(),
        wake: wake.clone(),
        options: WorkerOptions::default(),
    });
    submit(store.as_ref(), "r-1").await;
    let (stop, stopped) = watch::channel(false);
    let (keeper_stop, keeper_stopped) = watch::channel(false);
    let kept = keeper.clone();
    let keeping = tokio::spawn(async move { kept.run(keeper_stopped).await });
    let working = tokio::spawn(worker.run(stopped));
    let id = IntentId::from_stored("r-1".to_owned());
    let story = tokio::time::timeout(Duration::from_secs(40 * 86_400), async {
        loop {
            let story = store.story(&id).await.unwrap().unwrap();
            let state = story.intent.state;
            if state.is_final()
                || state == State::NeedsReview
                || (state == State::Processing && story.intent.open_attempt.is_none())
            {
                return story;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .expect("the refund neither ended nor was parked");
    stop.send_replace(true);
    working.await.unwrap();
    keeper_stop.send_replace(true);
    keeping.await.unwrap();
    assert_eq!(story.intent.state, expected.state, "{story:#?}");
    assert_eq!(story.transfers.iter().map(|transfer| transfer.kind.as_str()).collect::<Vec<_>>(), expected.transfers);
    assert_eq!(*provider.calls.lock().unwrap(), expected.calls);
    assert_eq!((story.payment.reserved_minor, story.payment.refunded_minor), (expected.reserved, expected.refunded));
    story
}

pub(crate) async fn submit(store: &dyn Store, id: &str) {
    let payment_id = PaymentId::from_stored("p-1".to_owned());
    let payment = NewPayment {
        payment_id: payment_id.clone(),
        psp: "acme".to_owned(),
        psp_account: "a".to_owned(),
        psp_payment_ref: "pi_1".to_owned(),
        merchant_reference: None,
        captured: euros(10_000),
        charged_back_minor: 0,
    };
    let _inserted = store.import_payments(&[payment]).await.unwrap();
    let intent = NewIntent {
        intent_id: IntentId::from_stored(id.to_owned()),
        payment_id,
        amount: euros(1_000),
        merchant_reference: None,
        refund_reason: None,
        psp: "acme".to_owned(),
        psp_account: "a".to_owned(),
        psp_payment_ref: "pi_1".to_owned(),
        idempotency_key: format!("key-{id}"),
        create_body: id.as_bytes().to_vec(),
        due_at: None,
    };
    let _created = store.submit(&[intent]).await.unwrap();
}

const POSTED: Expected =
    Expected { state: State::Succeeded, transfers: &["post"], calls: &["create"], reserved: 0, refunded: 1_000 };

#[tokio::test(start_paused = true)]
async fn an_accepted_refund_is_posted_once() {
    let story = check(vec![accepted(PspStatus::Succeeded)], vec![], POSTED).await;
    assert_eq!((story.attempts.len(), story.intent.version), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_45_seconds_is_waited_for() {
    let answer = Answer::After(Duration::from_secs(45), Outcome::Accepted { refund: refund(PspStatus::Succeeded) });
    check(vec![answer], vec![], POSTED).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_up_at_once_and_never_sent_again() {
    let expected = Expected { calls: &["create", "lookup"], ..POSTED };
    let story = check(vec![unknown()], vec![found(PspStatus::Succeeded)], expected).await;
    assert!(story.now - story.intent.created_at < TimeDelta::seconds(5));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_answers_is_given_up_at_its_deadline_and_looked_up() {
    let expected = Expected { calls: &["create", "lookup"], ..POSTED };
    check(vec![Answer::Never], vec![found(PspStatus::Succeeded)], expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_create_that_never_happened_is_sent_again_only_after_absence_is_proved() {
    // Begun before the deadline plus the absence window (6 min) proves nothing: 0 s, 5 s, 30 s, 2 min, then the first moment that proves.
    let calls = &["create", "lookup", "lookup", "lookup", "lookup", "lookup", "create"];
    let expected = Expected { calls, ..POSTED };
    let story = check(vec![unknown(), accepted(PspStatus::Succeeded)], vec![at_once(Outcome::Absent)], expected).await;
    let resend = story.attempts.last().unwrap();
    assert!(resend.grounds.as_deref().unwrap().contains("absent in lookup"), "{resend:?}");
    assert_eq!(resend.key_expires_at, story.attempts[0].key_expires_at, "a resend never renews the key");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_good_fails_and_gives_the_reservation_back() {
    let expected = Expected { state: State::Failed, transfers: &[], calls: &["create"], reserved: 0, refunded: 0 };
    check(vec![rejected(RejectionClass::Final, true)], vec![], expected).await;
}

#[tokio::test(start_paused = true)]
async fn already_refunded_may_be_ours() {
    let expected = Expected { calls: &["create", "lookup"], ..POSTED };
    check(vec![rejected(RejectionClass::AlreadyRefunded, true)], vec![found(PspStatus::Succeeded)], expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_start_is_asked_again_later() {
    let expected = Expected { calls: &["create", "create", "create"], ..POSTED };
    check(vec![at_once(not_executed()), at_once(not_executed()), accepted(PspStatus::Succeeded)], vec![], expected)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_pending_refund_keeps_its_reason_and_its_reservation() {
    let expected =
        Expected { state: State::Processing, transfers: &[], calls: &["create"], reserved: 1_000, refunded: 0 };
    let story = check(vec![accepted(PspStatus::Processing)], vec![], expected).await;
    assert_eq!(story.intent.state_reason.as_deref(), Some("why"));
    assert_eq!(story.intent.next_action_at.map(|at| (at - story.now).num_hours()), Some(23));
}

#[tokio::test(start_paused = true)]
async fn two_refunds_with_our_reference_are_for_a_person() {
    let hits = Outcome::Found {
        refunds: vec![
            refund(PspStatus::Succeeded),
            PspRefund { psp_refund_ref: "re_2".to_owned(), ..refund(PspStatus::Succeeded) },
        ],
    };
    let expected = Expected {
        state: State::NeedsReview,
        transfers: &[],
        calls: &["create", "lookup"],
        reserved: 1_000,
        refunded: 0,
    };
    let story = check(vec![unknown()], vec![at_once(hits)], expected).await;
    assert_eq!(story.breaks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refund_that_stays_unknown_is_parked_at_the_end_of_its_ladder_and_keeps_its_reservation() {
    let expected = Expected {
        state: State::NeedsReview,
        transfers: &[],
        calls: &["create", "lookup", "lookup", "lookup", "lookup", "lookup", "lookup"],
        reserved: 1_000,
        refunded: 0,
    };
    let story = check(vec![unknown()], vec![unknown()], expected).await;
    assert!(
        story.intent.state_reason.as_deref().unwrap().starts_with("ladder_ended"),
        "{:?}",
        story.intent.state_reason
    );
}
