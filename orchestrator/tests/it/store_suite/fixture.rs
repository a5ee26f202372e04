//! What sentences are made of: payments, intents and changes with everything that does not matter filled in.

use super::Engine;
use chrono::{DateTime, TimeDelta, Utc};
use jobs::ids::{AttemptId, IntentId, PaymentId, SessionId, Token};
use jobs::money::{Currency, Money};
use jobs::refund::intent::{AttemptKind, InboxMessage, Intent, IntentFile, NextAction};
use jobs::refund::outcome::{Outcome, PspRefund};
use jobs::refund::state::{PspStatus, State};
use orchestrator::store::change::{
    Change, FenceGuard, InboxResult, NewAttempt, NewInboxRow, NewOutcome, TransferKind, WriteResult,
};
use orchestrator::store::read::Payment;
use orchestrator::store::submit::{ImportResult, NewIntent, NewPayment, SubmitResult};
use orchestrator::store::{DueQuery, Store, StoreError};
use std::sync::Arc;
use uuid::Uuid;

pub(crate) const PSP: &str = "acme";
pub(crate) const ACCOUNT: &str = "main";

/// A fresh database with a current epoch.
pub(crate) struct Fixture {
    engine: Box<dyn Engine>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) epoch: i64,
}

impl Fixture {
    pub(crate) async fn new(engine: Box<dyn Engine>) -> Self {
        let epoch = engine.raise_epoch().await;
        Self { store: engine.store(), engine, epoch }
    }

    /// Registers another generation; the fixture goes on making tokens of the one before.
    pub(crate) async fn raise_epoch(&self) -> i64 {
        self.engine.raise_epoch().await
    }

    pub(crate) const fn token(&self, counter: i64) -> Token {
        Token { epoch: self.epoch, counter }
    }

    pub(crate) async fn now(&self) -> DateTime<Utc> {
        self.store.now().await.unwrap()
    }

    pub(crate) async fn far_past(&self) -> DateTime<Utc> {
        self.now().await - TimeDelta::days(30)
    }

    pub(crate) async fn far_future(&self) -> DateTime<Utc> {
        self.now().await + TimeDelta::days(30)
    }

    /// Imports one payment in euros.
    pub(crate) async fn pay(&self, id: &str, captured_minor: i64) {
        self.import(&new_payment(id, euro(captured_minor))).await;
    }

    pub(crate) async fn import(&self, payment: &NewPayment) {
        let results = self.store.import_payments(std::slice::from_ref(payment)).await.unwrap();
        assert_eq!(results, [ImportResult::Inserted]);
    }

    pub(crate) async fn payment(&self, id: &str) -> Payment {
        self.store.payment(&payment_id(id)).await.unwrap().unwrap()
    }

    pub(crate) async fn submit_one(&self, intent: NewIntent) -> SubmitResult {
        self.store.submit(&[intent]).await.unwrap().remove(0)
    }

    /// An intent of one euro on a payment of its own, first create far in the past.
    pub(crate) async fn intent(&self, id: &str) -> Intent {
        self.pay(&format!("p-{id}"), 100).await;
        self.created(new_intent(id, &format!("p-{id}"), euro(100))).await
    }

    pub(crate) async fn created(&self, mut new: NewIntent) -> Intent {
        if new.due_at.is_none() {
            new.due_at = Some(self.far_past().await);
        }
        match self.submit_one(new).await {
            SubmitResult::Created(intent) => *intent,
            other => panic!("not created: {other:?}"),
        }
    }

    pub(crate) async fn file(&self, id: &str) -> IntentFile {
        self.store.load(&[intent_id(id)]).await.unwrap().files.remove(0)
    }

    pub(crate) async fn row(&self, id: &str) -> Intent {
        self.file(id).await.intent
    }

    pub(crate) async fn apply_one(&self, change: Change) -> WriteResult {
        self.store.apply(&[change]).await.unwrap()[0]
    }

    pub(crate) async fn write(&self, change: Change) -> Intent {
        let id = change.intent_id.clone();
        assert_eq!(self.apply_one(change).await, WriteResult::Written);
        self.row(id.as_str()).await
    }

    /// Opens a create as the first step of a hold with this counter.
    pub(crate) async fn install(&self, id: &str, counter: i64) -> Intent {
        let intent = self.row(id).await;
        let change = self.installing(&intent, counter, self.far_future().await);
        self.write(change).await
    }

    pub(crate) fn installing(&self, intent: &Intent, counter: i64, until: DateTime<Utc>) -> Change {
        let attempt_id = attempt_id(intent.intent_id.as_str(), counter);
        let mut change = change_to(intent, self.token(counter), State::Sending, until);
        change.holder_session = Some(session(counter));
        change.open_attempt = Some(attempt_id);
        change.attempt = Some(new_attempt(attempt_id, until));
        change
    }

    /// The open attempt was answered: the refund succeeded.
    pub(crate) fn succeeding(&self, open: &Intent) -> Change {
        let mut change = change_to(open, open.fence, State::Succeeded, open.updated_at);
        change.psp_refund_ref = Some(format!("re_{}", open.intent_id));
        change.outcomes = vec![outcome_of(open, accepted(open))];
        change.transfer = Some(TransferKind::Post);
        change
    }

    /// Installs and answers.
    pub(crate) async fn succeed(&self, id: &str, counter: i64) -> Intent {
        let open = self.install(id, counter).await;
        self.write(self.succeeding(&open)).await
    }

    pub(crate) async fn tell(&self, id: &str, source_id: &str) -> i64 {
        match self.store.append_inbox(&[cancel(id, source_id)]).await.unwrap()[0] {
            InboxResult::Stored { inbox_id } => inbox_id,
            other => panic!("not stored: {other:?}"),
        }
    }

    /// Ids due for the provider of this suite, in order.
    pub(crate) async fn due(&self, live: &[SessionId], creates_allowed: bool) -> Vec<String> {
        let query = DueQuery { creates_allowed, live_sessions: Some(live.to_vec()), ..due_query() };
        self.store.due(&query).await.unwrap().iter().map(ToString::to_string).collect()
    }
}

pub(crate) fn due_query() -> DueQuery {
    DueQuery {
        psp: PSP.to_owned(),
        psp_account: ACCOUNT.to_owned(),
        creates_allowed: true,
        machine_version: jobs::refund::intent::MACHINE_VERSION,
        live_sessions: Some(Vec::new()),
        limit: 100,
    }
}

pub(crate) fn currency(code: &str) -> Currency {
    code.parse().unwrap()
}

pub(crate) fn money(minor: i64, code: &str) -> Money {
    Money { minor, currency: currency(code) }
}

pub(crate) fn euro(minor: i64) -> Money {
    money(minor, "EUR")
}

pub(crate) fn intent_id(text: &str) -> IntentId {
    IntentId::new(text).unwrap()
}

pub(crate) fn payment_id(text: &str) -> PaymentId {
    PaymentId::new(text).unwrap()
}

pub(crate) const fn session(number: i64) -> SessionId {
    SessionId(Uuid::from_u128(0x5e55_0000 + number.unsigned_abs() as u128))
}

/// The same name and counter give the same attempt.
pub(crate) fn attempt_id(name: &str, counter: i64) -> AttemptId {
    let mut number = u128::from(counter.unsigned_abs());
    for byte in name.bytes() {
        number = number.wrapping_mul(0x100_0193).wrapping_add(u128::from(byte));
    }
    AttemptId(Uuid::from_u128(number))
}

pub(crate) fn new_payment(id: &str, captured: Money) -> NewPayment {
    NewPayment {
        payment_id: payment_id(id),
        psp: PSP.to_owned(),
        psp_account: ACCOUNT.to_owned(),
        psp_payment_ref: format!("pi_{id}"),
        merchant_reference: Some(format!("order_{id}")),
        captured,
        charged_back_minor: 0,
    }
}

pub(crate) fn new_intent(id: &str, payment: &str, amount: Money) -> NewIntent {
    NewIntent {
        intent_id: intent_id(id),
        payment_id: payment_id(payment),
        amount,
        merchant_reference: Some(format!("return_{id}")),
        refund_reason: None,
        psp: PSP.to_owned(),
        psp_account: ACCOUNT.to_owned(),
        psp_payment_ref: format!("pi_{payment}"),
        idempotency_key: format!("key_{id}"),
        create_body: vec![0, 159, 146, 150, 255, b'\''],
        due_at: None,
    }
}

/// A step of a plain kind: it closes what was open and gives the row what its new state needs.
pub(crate) fn change_to(intent: &Intent, token: Token, state: State, at: DateTime<Utc>) -> Change {
    let next_action = match state {
        State::Recorded => NextAction::Create,
        State::Sending | State::Unknown | State::Processing => NextAction::Lookup,
        _ => NextAction::None,
    };
    Change {
        intent_id: intent.intent_id.clone(),
        expected_version: intent.version,
        token,
        fence_guard: if token == intent.fence { FenceGuard::Equal } else { FenceGuard::Below },
        expected_open_attempt: intent.open_attempt,
        state,
        state_reason: (state == State::NeedsReview).then(|| "the ladder ended".to_owned()),
        psp_refund_ref: intent.psp_refund_ref.clone(),
        holder_session: None,
        open_attempt: None,
        next_action,
        next_action_at: (next_action != NextAction::None).then_some(at),
        rung: 0,
        attempt: None,
        outcomes: Vec::new(),
        transfer: None,
        breaks: Vec::new(),
        inbox_applied: Vec::new(),
    }
}

pub(crate) fn new_attempt(attempt_id: AttemptId, until: DateTime<Utc>) -> NewAttempt {
    NewAttempt {
        attempt_id,
        kind: AttemptKind::Create,
        started_at: until - TimeDelta::minutes(2),
        deadline: until - TimeDelta::minutes(1),
        key_expires_at: Some(until),
        absent_until: Some(until + TimeDelta::minutes(5)),
        grounds: None,
    }
}

pub(crate) fn accepted(intent: &Intent) -> Outcome {
    let refund = PspRefund {
        psp_refund_ref: format!("re_{}", intent.intent_id),
        status: PspStatus::Succeeded,
        amount: intent.amount,
        reason: None,
    };
    Outcome::Accepted { refund }
}

pub(crate) fn outcome_of(open: &Intent, outcome: Outcome) -> NewOutcome {
    NewOutcome { attempt_id: open.open_attempt.unwrap(), outcome, duration_ms: 45_000, late: false }
}

pub(crate) fn cancel(id: &str, source_id: &str) -> NewInboxRow {
    let message = InboxMessage::Cancel { actor: "ann".to_owned(), reason: "customer kept it".to_owned() };
    NewInboxRow { intent_id: intent_id(id), source_id: source_id.to_owned(), message }
}

/// The database refused and names this rule.
pub(crate) fn assert_refused<T: std::fmt::Debug>(result: &Result<T, StoreError>, rule: &str) {
    match result {
        Err(StoreError::Refused(text)) => assert!(text.contains(rule), "{text:?} does not name {rule}"),
        other => panic!("{rule} did not refuse: {other:?}"),
    }
}
