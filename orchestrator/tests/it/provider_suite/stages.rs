//! The same stage directions for both providers: what a scenario asks for, and how each of them is made to do it.

use super::{intent_of, stripe_at};
use chrono::DateTime;
use jobs::ids::IntentId;
use jobs::money::Money;
use jobs::refund::intent::Intent;
use jobs::refund::outcome::{Rejection, RejectionClass};
use orchestrator::clock::SimulatedClock;
use orchestrator::psp::Provider;
use orchestrator::psp::memory::{Executes, LookupScript, MemoryProvider, Script};
use psp_mock::{CallKind, Config, Effect, Fault, How, Match, Mock, Payment};
use std::sync::Arc;
use std::time::Duration;

pub(super) const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// What shall go wrong with the intent's next create.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mishap {
    AnswerLost,
    Dropped,
    RateLimited {
        retry_after_s: u64,
    },
    Disputed,
    Pending,
    HiddenFor(Duration),
    /// Executed; no answer until the caller gives up.
    Hangs,
    ExecutesLate(Duration),
    StoredErrorExecuted,
    StoredErrorNotExecuted,
}

/// What shall go wrong with the intent's next lookup.
#[derive(Debug, Clone, Copy)]
pub(super) enum LookupMishap {
    BreaksOff,
    RateLimited,
}

pub(super) enum Stage {
    Memory { provider: Box<MemoryProvider>, clock: Arc<SimulatedClock> },
    Stripe { provider: Box<dyn Provider>, mock: Mock },
}

impl Stage {
    pub(super) fn memory() -> Self {
        let clock = Arc::new(SimulatedClock::new(DateTime::UNIX_EPOCH));
        Self::Memory { provider: Box::new(MemoryProvider::new(clock.clone(), KEY_LIFETIME)), clock }
    }

    pub(super) async fn stripe() -> Self {
        let mock = Mock::start(Config { key_lifetime: KEY_LIFETIME, ..Config::default() }).await.unwrap();
        Self::Stripe { provider: Box::new(stripe_at(&mock.url())), mock }
    }

    pub(super) fn provider(&self) -> &dyn Provider {
        match self {
            Self::Memory { provider, .. } => &**provider,
            Self::Stripe { provider, .. } => &**provider,
        }
    }

    /// A refund of 10.00 of a payment of `captured` cents.
    pub(super) fn intent(&self, name: &str, captured: i64) -> Intent {
        let intent = intent_of(self.provider(), name, 1_000, "EUR");
        self.add_payment(&intent, captured);
        intent
    }

    fn add_payment(&self, intent: &Intent, captured: i64) {
        let Intent { psp_account, psp_payment_ref, .. } = intent;
        match self {
            Self::Memory { provider, .. } => {
                provider.add_payment(psp_account, psp_payment_ref, Money::new(captured, intent.amount.currency));
            }
            Self::Stripe { mock, .. } => {
                let payment = Payment {
                    id: Some(psp_payment_ref.clone()),
                    amount: captured,
                    currency: "eur".to_owned(),
                    account: Some(psp_account.clone()),
                    ..Payment::default()
                };
                mock.add_payments(vec![payment]).unwrap();
            }
        }
    }

    pub(super) fn executed(&self, intent: &Intent) -> u64 {
        match self {
            Self::Memory { provider, .. } => provider.counters(&intent.intent_id).executed,
            Self::Stripe { mock, .. } => mock.book(&by_intent(&intent.intent_id)).refunds.len() as u64,
        }
    }

    pub(super) fn advance(&self, by: Duration) {
        match self {
            Self::Memory { clock, .. } => clock.advance(by),
            Self::Stripe { mock, .. } => mock.advance(by),
        }
    }

    pub(super) fn script(&self, intent: &Intent, mishap: Mishap) {
        match self {
            Self::Memory { provider, .. } => provider.script(&intent.intent_id, in_memory(mishap)),
            Self::Stripe { mock, .. } => {
                let matches = Match::intent(intent.intent_id.as_str());
                mock.add_fault(Fault::once(matches, at_the_mock(mishap))).unwrap();
            }
        }
    }

    pub(super) fn script_lookup(&self, intent: &Intent, mishap: LookupMishap) {
        match self {
            Self::Memory { provider, .. } => {
                let script = match mishap {
                    LookupMishap::BreaksOff => LookupScript::BreaksOff,
                    LookupMishap::RateLimited => LookupScript::NotExecuted { retry_after_ms: Some(2_000) },
                };
                provider.script_lookup(&intent.intent_id, script);
            }
            Self::Stripe { mock, .. } => {
                let effect = match mishap {
                    LookupMishap::BreaksOff => Effect::Truncated { bytes: None },
                    LookupMishap::RateLimited => Effect::RateLimited { retry_after_s: Some(2) },
                };
                let payment = Some(intent.psp_payment_ref.clone());
                mock.add_fault(Fault::once(Match { payment, ..Match::call(CallKind::List) }, effect)).unwrap();
            }
        }
    }
}

fn by_intent(intent_id: &IntentId) -> psp_mock::BookQuery {
    psp_mock::BookQuery { intent: Some(intent_id.as_str().to_owned()), ..psp_mock::BookQuery::default() }
}

fn in_memory(mishap: Mishap) -> Script {
    match mishap {
        Mishap::AnswerLost => Script::answer_lost(),
        Mishap::Dropped => Script::dropped(),
        Mishap::RateLimited { retry_after_s } => Script::not_executed(Some(retry_after_s * 1_000)),
        Mishap::Disputed => Script::refused(Rejection {
            code: "charge_disputed".to_owned(),
            message: "disputed".to_owned(),
            stored_under_key: true,
            class: RejectionClass::Final,
        }),
        Mishap::Pending => Script::pending("insufficient_funds"),
        Mishap::HiddenFor(duration) => Script::lagging(duration),
        Mishap::Hangs => Script::held(),
        Mishap::ExecutesLate(after) => Script::late(after),
        Mishap::StoredErrorExecuted => Script::stored_error(Executes::AtOnce),
        Mishap::StoredErrorNotExecuted => Script::stored_error(Executes::Never),
    }
}

fn at_the_mock(mishap: Mishap) -> Effect {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
    match mishap {
        Mishap::AnswerLost => Effect::AnswerLost { how: How::Close },
        Mishap::Dropped => Effect::Dropped { how: How::Reset },
        Mishap::RateLimited { retry_after_s } => Effect::RateLimited { retry_after_s: Some(retry_after_s) },
        Mishap::Disputed => {
            Effect::Refuse { code: "charge_disputed".to_owned(), status: 400, message: None, param: None }
        }
        Mishap::Pending => Effect::InsufficientFunds { succeeds_after_ms: None, fails_after_ms: None },
        Mishap::HiddenFor(duration) => Effect::ListLag { ms: ms(duration) },
        Mishap::Hangs => Effect::AnswerLost { how: How::Hang },
        Mishap::ExecutesLate(after) => Effect::ExecutesLate { after_ms: ms(after), how: How::Close },
        Mishap::StoredErrorExecuted => Effect::ErrorExecuted { status: 500, stored: true },
        Mishap::StoredErrorNotExecuted => Effect::ErrorNotExecuted { status: 500, stored: true },
    }
}
