//! One posting for a success, one contra entry for a reversal, and nothing else.

use super::fixture::{Fixture, assert_refused, change_to, euro, intent_id, money, new_intent, new_payment};
use jobs::money::Currency;
use jobs::refund::intent::Intent;
use jobs::refund::state::State;
use orchestrator::store::change::{Change, TransferKind};
use orchestrator::store::read::Transfer;
use std::collections::BTreeMap;

async fn transfers(fixture: &Fixture, id: &str) -> Vec<Transfer> {
    fixture.store.story(&intent_id(id)).await.unwrap().unwrap().transfers
}

fn reversing(fixture: &Fixture, succeeded: &Intent, counter: i64) -> Change {
    let mut change = change_to(succeeded, fixture.token(counter), State::Reversed, succeeded.updated_at);
    change.transfer = Some(TransferKind::Reverse);
    change
}

pub(crate) async fn a_success_posts_once(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let succeeded = fixture.succeed("r-1", 3).await;
    let posted = transfers(fixture, "r-1").await;
    assert_eq!(posted.len(), 1);
    assert_eq!((posted[0].kind.as_str(), posted[0].amount, posted[0].token), ("post", euro(100), fixture.token(3)));
    assert_eq!(posted[0].debit_account, "customer_refunds:EUR");
    assert_eq!(posted[0].credit_account, "psp_clearing:acme:EUR");
    // Whatever a bug in the rules asks for, the same intent is not posted twice.
    for counter in [3, 4] {
        let mut again = change_to(&succeeded, fixture.token(counter), State::Succeeded, succeeded.updated_at);
        again.transfer = Some(TransferKind::Post);
        assert_refused(&fixture.store.apply(&[again]).await, "");
    }
    assert_eq!(transfers(fixture, "r-1").await, posted);
    assert_eq!(fixture.row("r-1").await, succeeded);
    assert_eq!(fixture.payment("p-r-1").await.refunded_minor, 100);
}

pub(crate) async fn a_reversal_posts_the_contra_entry(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let succeeded = fixture.succeed("r-1", 1).await;
    let reversed = fixture.write(reversing(fixture, &succeeded, 2)).await;
    let posted = transfers(fixture, "r-1").await;
    let kinds: Vec<&str> = posted.iter().map(|transfer| transfer.kind.as_str()).collect();
    assert_eq!(kinds, ["post", "reverse"]);
    assert_eq!(posted[1].debit_account, posted[0].credit_account);
    assert_eq!(posted[1].credit_account, posted[0].debit_account);
    assert_eq!((posted[1].amount, posted[1].token), (euro(100), fixture.token(2)));
    let payment = fixture.payment("p-r-1").await;
    assert_eq!((payment.refunded_minor, payment.refundable_minor()), (0, 100));
    assert_refused(&fixture.store.apply(&[reversing(fixture, &reversed, 3)]).await, "");
    assert_eq!(transfers(fixture, "r-1").await, posted);
}

pub(crate) async fn a_transfer_must_fit_the_state(fixture: &Fixture) {
    fixture.intent("r-1").await;
    let future = fixture.far_future().await;
    for state in State::ALL {
        for kind in [TransferKind::Post, TransferKind::Reverse] {
            let fits = match kind {
                TransferKind::Post => matches!(state, State::Succeeded | State::Reversed),
                TransferKind::Reverse => state == State::Reversed,
            };
            if fits || state == State::Sending {
                continue;
            }
            let intent = fixture.row("r-1").await;
            let mut change = change_to(&intent, fixture.token(1), state, future);
            change.transfer = Some(kind);
            assert_refused(&fixture.store.apply(&[change]).await, "ledger_transfers_fence");
            assert_eq!(fixture.row("r-1").await, intent, "{kind:?} {state}");
        }
    }
    assert!(transfers(fixture, "r-1").await.is_empty());
    assert!(fixture.store.balances().await.unwrap().is_empty());
}

pub(crate) async fn debits_equal_credits_per_currency(fixture: &Fixture) {
    for (number, code) in ["EUR", "USD", "JPY", "EUR", "USD", "EUR"].into_iter().enumerate() {
        let (id, payment) = (format!("r-{number}"), format!("p-{number}"));
        let amount = money(10_i64.pow(u32::try_from(number).unwrap()), code);
        fixture.import(&new_payment(&payment, amount)).await;
        fixture.created(new_intent(&id, &payment, amount)).await;
        let succeeded = fixture.succeed(&id, 1).await;
        if number % 2 == 1 {
            fixture.write(reversing(fixture, &succeeded, 2)).await;
        }
    }
    let balances = fixture.store.balances().await.unwrap();
    let seen: Vec<(&str, &str, i64, i64)> = balances
        .iter()
        .map(|balance| (balance.account.as_str(), balance.currency.as_str(), balance.debit_minor, balance.credit_minor))
        .collect();
    assert_eq!(
        seen,
        [
            ("customer_refunds:EUR", "EUR", 101_001, 101_000),
            ("customer_refunds:JPY", "JPY", 100, 0),
            ("customer_refunds:USD", "USD", 10_010, 10),
            ("psp_clearing:acme:EUR", "EUR", 101_000, 101_001),
            ("psp_clearing:acme:JPY", "JPY", 0, 100),
            ("psp_clearing:acme:USD", "USD", 10, 10_010),
        ]
    );
    let mut sums: BTreeMap<Currency, i64> = BTreeMap::new();
    for balance in &balances {
        *sums.entry(balance.currency).or_default() += balance.debit_minor - balance.credit_minor;
    }
    assert!(sums.values().all(|sum| *sum == 0), "{sums:?}");
}
