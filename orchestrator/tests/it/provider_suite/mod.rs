//! What every provider adapter must do, on the memory provider and on Stripe's adapter against the mock, and what Stripe's adapter
//! makes of every answer and of every way to get none.

mod answers;
mod conformance;
mod listings;
mod memory;
mod responder;
mod silences;
mod stages;

use chrono::DateTime;
use jobs::ids::{IntentId, PaymentId, Token};
use jobs::money::Money;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::intent::{Intent, MACHINE_VERSION, NextAction};
use jobs::refund::key::idempotency_key;
use jobs::refund::outcome::{Outcome, PspRefund};
use jobs::refund::state::{PspStatus, State};
use orchestrator::psp::stripe::{StripeConfig, StripeProvider};
use orchestrator::psp::{CreateBody, CreateCall, LookupCall, Provider};
use std::time::Duration;

/// Long enough that only what hangs on purpose meets it.
const AMPLE: Duration = Duration::from_secs(20);

/// A refund of `minor` of the payment `pi_{name}`, as submit would store it.
fn intent_of(provider: &dyn Provider, name: &str, minor: i64, currency: &str) -> Intent {
    let intent_id = IntentId::new(name).unwrap();
    let amount = Money::new(minor, currency.parse().unwrap());
    let psp_payment_ref = format!("pi_{name}");
    let body = CreateBody { intent_id: &intent_id, psp_payment_ref: &psp_payment_ref, amount, refund_reason: None };
    let at = DateTime::UNIX_EPOCH;
    Intent {
        create_body: provider.encode_create(&body).unwrap(),
        payment_id: PaymentId::new("payment").unwrap(),
        psp: "stripe".to_owned(),
        psp_account: "acct_1".to_owned(),
        merchant_reference: None,
        refund_reason: None,
        amount,
        idempotency_key: idempotency_key("test", "acct_1", &intent_id),
        intent_id,
        psp_payment_ref,
        machine_version: MACHINE_VERSION,
        state: State::Recorded,
        state_reason: None,
        psp_refund_ref: None,
        version: 1,
        fence: Token::NONE,
        holder_session: None,
        open_attempt: None,
        next_action: NextAction::Create,
        next_action_at: Some(at),
        rung: 0,
        timeline: 1,
        created_at: at,
        updated_at: at,
    }
}

fn stripe_config(url: &str) -> StripeConfig {
    StripeConfig::new(url, "sk_test_1".to_owned().into())
}

fn stripe_at(url: &str) -> StripeProvider {
    StripeProvider::new(stripe_config(url)).unwrap()
}

async fn create(provider: &dyn Provider, intent: &Intent) -> Outcome {
    provider.create(CreateCall { intent, time_limit: AMPLE }).await
}

async fn lookup(provider: &dyn Provider, intent: &Intent) -> Outcome {
    provider.lookup(LookupCall { intent, time_limit: AMPLE }).await
}

fn refund(id: &str, status: PspStatus, minor: i64, currency: &str, reason: Option<&str>) -> PspRefund {
    PspRefund {
        psp_refund_ref: id.to_owned(),
        status,
        amount: Money::new(minor, currency.parse().unwrap()),
        reason: reason.map(str::to_owned),
    }
}

fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown { .. })
}

#[test]
fn stripes_own_exceptions_are_the_usual_ones() {
    assert_eq!(stripe_config("http://localhost").wire_amounts, Capabilities::stripe().wire_amounts);
}
