//! One store and the commands played to it.
//!
//! A command is prepared once, from the rows of the memory store, as a [`Play`] in terms all stores share: epochs count from the case's
//! first one, messages go by their source. Each player translates it into its own numbers.

use super::command::{Command, Hold, INTENTS, PAYMENTS, Refund, Step};
use super::rows::plain_intent;
use crate::store_suite::Engine;
use crate::store_suite::fixture::{cancel, euro, intent_id, new_intent, new_payment, payment_id, session};
use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, PaymentId, Token};
use jobs::refund::intent::MACHINE_VERSION;
use orchestrator::store::change::{Change, InboxResult, NewInboxRow};
use orchestrator::store::read::Story;
use orchestrator::store::submit::{NewIntent, NewPayment, SubmitResult};
use orchestrator::store::{DueQuery, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a message nobody sent.
pub(crate) const NO_SOURCE: i64 = 1_000;

/// A command in terms all stores share.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    Import(Vec<NewPayment>),
    Submit(Vec<NewIntent>),
    /// Tokens with the case's epochs, inbox ids that are numbers of sources.
    Write(Vec<Change>),
    Tell(Vec<NewInboxRow>),
    RaiseEpoch,
    Pause,
    Resume,
    Due(DueQuery),
}

pub(crate) struct Player<'a> {
    engine: &'a dyn Engine,
    pub(crate) store: Arc<dyn Store>,
    case: u32,
    /// The case's epoch 1 in this store, and how many it has by now.
    first_epoch: i64,
    epochs: i64,
    /// Ids of messages by their source.
    inbox: BTreeMap<String, i64>,
}

pub(crate) fn past() -> DateTime<Utc> {
    DateTime::from_timestamp(1_000_000_000, 123_456_000).unwrap()
}

pub(crate) fn future() -> DateTime<Utc> {
    DateTime::from_timestamp(4_000_000_000, 654_321_000).unwrap()
}

fn failed(error: StoreError) -> String {
    format!("the store failed: {error}")
}

impl<'a> Player<'a> {
    /// Two payments and two refunds to begin with.
    pub(crate) async fn start(engine: &'a dyn Engine, case: u32) -> Result<Self, String> {
        let first_epoch = engine.raise_epoch().await;
        let store = engine.store();
        let mut player = Self { engine, store, case, first_epoch, epochs: 1, inbox: BTreeMap::new() };
        let paid = [(0, 100), (1, 250)].map(|(payment, minor)| player.new_payment(payment, minor));
        player.play(&Play::Import(paid.to_vec())).await?;
        let refunds = [(0, 0, 100), (1, 1, 60)]
            .map(|(intent, payment, minor)| player.new_refund(&Refund { intent, payment, minor, reason: false }));
        player.play(&Play::Submit(refunds.to_vec())).await?;
        Ok(player)
    }

    pub(crate) fn psp(&self) -> String {
        format!("psp-{}", self.case)
    }

    pub(crate) fn intents(&self) -> Vec<IntentId> {
        (0..INTENTS).map(|intent| intent_id(&format!("r-{}-{intent}", self.case))).collect()
    }

    pub(crate) fn payments(&self) -> Vec<PaymentId> {
        (0..PAYMENTS).map(|payment| payment_id(&format!("p-{}-{payment}", self.case))).collect()
    }

    pub(crate) fn source(&self, number: i64) -> String {
        format!("s-{}-{number}", self.case)
    }

    /// The token as the case counts epochs.
    pub(crate) const fn shared(&self, token: Token) -> Token {
        if token.epoch == 0 { token } else { Token { epoch: token.epoch - self.first_epoch + 1, ..token } }
    }

    fn new_payment(&self, payment: u8, minor: i64) -> NewPayment {
        NewPayment { psp: self.psp(), ..new_payment(&format!("p-{}-{payment}", self.case), euro(minor)) }
    }

    fn new_refund(&self, refund: &Refund) -> NewIntent {
        let (id, payment) =
            (format!("r-{}-{}", self.case, refund.intent), format!("p-{}-{}", self.case, refund.payment));
        NewIntent {
            psp: self.psp(),
            refund_reason: refund.reason.then(|| "wrong size".to_owned()),
            due_at: Some(past()),
            ..new_intent(&id, &payment, euro(refund.minor))
        }
    }

    pub(crate) async fn story(&self, id: &IntentId) -> Result<Option<Story>, String> {
        self.store.story(id).await.map_err(failed)
    }

    /// Puts a command in shared terms, looking at this store's rows.
    pub(crate) async fn prepare(&self, command: &Command, number: usize) -> Result<Play, String> {
        Ok(match command {
            Command::Import { payment, minor } => Play::Import(vec![self.new_payment(*payment, *minor)]),
            Command::Submit(refunds) => Play::Submit(refunds.iter().map(|refund| self.new_refund(refund)).collect()),
            Command::Write(steps) => {
                let mut changes = Vec::new();
                for step in steps {
                    let id = intent_id(&format!("r-{}-{}", self.case, step.intent));
                    if let Some(mut story) = self.story(&id).await? {
                        story.intent = plain_intent(self, story.intent);
                        let unique = format!("a-{}-{number}-{}", self.case, step.intent);
                        changes.push(super::rows::change(self, step, &story, &unique));
                    }
                }
                Play::Write(changes)
            }
            Command::Tell(messages) => {
                let row = |(intent, source): &(u8, u8)| {
                    cancel(&format!("r-{}-{intent}", self.case), &self.source(i64::from(*source)))
                };
                let mut rows: Vec<NewInboxRow> = messages.iter().map(row).collect();
                // Rows of one call arrive at one moment; a store may number them by source, so that callers do not deadlock.
                // A source has one thing to say about one intent.
                rows.sort_by(|a, b| a.source_id.cmp(&b.source_id));
                rows.dedup_by(|b, a| a.source_id == b.source_id && a.intent_id != b.intent_id);
                Play::Tell(rows)
            }
            Command::RaiseEpoch => Play::RaiseEpoch,
            Command::Pause => Play::Pause,
            Command::Resume => Play::Resume,
            Command::Due { creates_allowed, live } => Play::Due(self.due_query(*creates_allowed, live)),
        })
    }

    pub(crate) fn due_query(&self, creates_allowed: bool, live: &[i64]) -> DueQuery {
        DueQuery {
            psp: self.psp(),
            psp_account: crate::store_suite::fixture::ACCOUNT.to_owned(),
            creates_allowed,
            machine_version: MACHINE_VERSION,
            live_sessions: live.iter().map(|number| session(*number)).collect(),
            limit: 100,
        }
    }

    /// The writer's token and whether it means its first step, by the case's epochs.
    pub(crate) fn token(&self, step: &Step, fence: Token) -> (Token, bool) {
        let now = self.epochs;
        let next = if fence.epoch == now { fence.counter + 1 } else { 1 };
        let of_next = |epoch| Token { epoch, counter: next };
        match step.hold {
            Hold::Same if fence == Token::NONE => (of_next(now), true),
            Hold::Same => (fence, false),
            Hold::Next => (of_next(now), true),
            Hold::Before { first_step } => (Token { epoch: now, counter: fence.counter - 1 }, first_step),
            Hold::SameAsFirst => (fence, true),
            Hold::NextAsFurther => (of_next(now), false),
            Hold::EpochBefore => (Token { epoch: now - 1, counter: 900 }, true),
            Hold::EpochAfter => (of_next(now + 1), true),
        }
    }

    /// The store's answer, without what databases assign.
    pub(crate) async fn play(&mut self, play: &Play) -> Result<String, String> {
        let store = Arc::clone(&self.store);
        match play {
            Play::Import(payments) => answer(store.import_payments(payments).await),
            Play::Submit(intents) => {
                let results = store.submit(intents).await;
                answer(results.map(|results| results.into_iter().map(|result| self.plain(result)).collect::<Vec<_>>()))
            }
            Play::Write(changes) => {
                let changes: Vec<Change> = changes.iter().map(|change| self.own(change)).collect();
                answer(store.apply(&changes).await)
            }
            Play::Tell(rows) => {
                let results = store.append_inbox(rows).await.map_err(failed)?;
                let mut kinds = Vec::new();
                for (row, result) in rows.iter().zip(results) {
                    kinds.push(match result {
                        InboxResult::Stored { inbox_id } => {
                            self.inbox.insert(row.source_id.clone(), inbox_id);
                            "stored"
                        }
                        InboxResult::Duplicate => "duplicate",
                        InboxResult::UnknownIntent => "unknown intent",
                    });
                }
                Ok(format!("{kinds:?}"))
            }
            Play::RaiseEpoch => {
                let raised = self.engine.raise_epoch().await;
                self.epochs += 1;
                Ok(format!("{}", raised - self.first_epoch + 1))
            }
            Play::Pause => answer(store.pause_psp(&self.psp(), "ann", "answers with 500").await),
            Play::Resume => answer(store.resume_psp(&self.psp(), "ann", "healthy").await),
            Play::Due(query) => {
                let mut due = store.due(query).await.map_err(failed)?;
                due.sort();
                Ok(format!("{due:?}"))
            }
        }
    }

    fn plain(&self, result: SubmitResult) -> SubmitResult {
        let plain = |intent: Box<_>| Box::new(plain_intent(self, *intent));
        match result {
            SubmitResult::Created(intent) => SubmitResult::Created(plain(intent)),
            SubmitResult::Same(intent) => SubmitResult::Same(plain(intent)),
            SubmitResult::Conflict(intent) => SubmitResult::Conflict(plain(intent)),
            other => other,
        }
    }

    /// The change in this store's numbers.
    fn own(&self, change: &Change) -> Change {
        let mut change = change.clone();
        if change.token.epoch > 0 {
            change.token.epoch += self.first_epoch - 1;
        }
        for read in &mut change.inbox_applied {
            let stored = self.inbox.get(&self.source(read.inbox_id));
            read.inbox_id = stored.copied().unwrap_or(i64::MAX - read.inbox_id);
        }
        change
    }
}

/// A refusal counts as an answer, whatever its text; no answer is a failure of the test.
fn answer<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Result<String, String> {
    match result {
        Ok(value) => Ok(format!("{value:?}")),
        Err(StoreError::Refused(_)) => Ok("refused".to_owned()),
        Err(error) => Err(failed(error)),
    }
}
