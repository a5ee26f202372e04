//! What comes in: intents with their reservations.
//!
//! The one writer reads what is there, decides in memory row by row, and writes what fits as one statement each, all in the same
//! transaction; so what was read can not have moved. Inserts still name `NOT EXISTS`, and counts are checked: a difference means the
//! decision was wrong and nothing is kept.

use super::connect::store_error;
use super::payments::payments_by_id;
use super::statement::{array, expect_rows, hexadecimal, now_micros};
use super::work::intents;
use crate::store::StoreError;
use crate::store::read::Payment;
use crate::store::submit::{NewIntent, SubmitResult};
use jobs::ids::{IntentId, PaymentId};
use jobs::refund::intent::{Intent, MACHINE_VERSION};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct IntentInsert<'a> {
    intent_id: &'a str,
    payment_id: &'a str,
    psp: &'a str,
    psp_account: &'a str,
    psp_payment_ref: &'a str,
    merchant_reference: Option<&'a str>,
    refund_reason: Option<&'a str>,
    currency: &'a str,
    amount_minor: i64,
    idempotency_key: &'a str,
    create_body: String,
    due_at: Option<i64>,
}

#[derive(Serialize)]
struct Reservation<'a> {
    payment_id: &'a str,
    amount_minor: i64,
}

const INTENTS_INSERT: &str = "
    INSERT INTO refund_intents (intent_id, payment_id, psp, psp_account, psp_payment_ref, merchant_reference, refund_reason, currency,
        amount_minor, idempotency_key, create_body, machine_version, state, version, fence_epoch, fence_counter, stamp_epoch,
        stamp_counter, stamp_version, next_action, next_action_at, rung, timeline, created_at, updated_at)
    SELECT value ->> 'intent_id', value ->> 'payment_id', value ->> 'psp', value ->> 'psp_account', value ->> 'psp_payment_ref',
        value ->> 'merchant_reference', value ->> 'refund_reason', value ->> 'currency', value ->> 'amount_minor',
        value ->> 'idempotency_key', unhex(value ->> 'create_body'), ?3, 'recorded', 1, 0, 0, 0,
        0, 1, 'create', coalesce(value ->> 'due_at', ?2), 0, 1, ?2, ?2
    FROM json_each(?1)
    WHERE NOT EXISTS (SELECT 1 FROM refund_intents AS i WHERE i.intent_id = value ->> 'intent_id')";

/// The guard against refunding more than was captured, in the statement that reserves.
const PAYMENTS_RESERVE: &str = "
    UPDATE payments SET reserved_minor = reserved_minor + r.amount_minor
    FROM (SELECT value ->> 'payment_id' AS payment_id, value ->> 'amount_minor' AS amount_minor FROM json_each(?1)) AS r
    WHERE payments.payment_id = r.payment_id
      AND captured_minor - charged_back_minor - refunded_minor - reserved_minor >= r.amount_minor";

/// What was decided about one submitted intent, before anything is written.
enum Decision {
    /// There already, or earlier in this batch.
    Repeat {
        same: bool,
    },
    New,
    Refused(SubmitResult),
}

/// Inserts placeholders with their reservations, in the order given.
pub(super) async fn submit(
    connection: &mut SqliteConnection,
    given: Vec<NewIntent>,
) -> Result<Vec<SubmitResult>, StoreError> {
    let now = now_micros(connection).await?;
    let mut payments = payments_by_id(connection, given.iter().map(|intent| &intent.payment_id)).await?;
    let ids: Vec<&IntentId> = given.iter().map(|intent| &intent.intent_id).collect();
    let ids = array(&ids)?;
    let stored = intents_by_id(connection, &ids).await?;

    let mut first_in_batch: BTreeMap<&IntentId, &NewIntent> = BTreeMap::new();
    let mut reserved: BTreeMap<&PaymentId, i64> = BTreeMap::new();
    let mut decisions = Vec::with_capacity(given.len());
    for intent in &given {
        let decision = match (stored.get(&intent.intent_id), first_in_batch.get(&intent.intent_id)) {
            (Some(stored), _) => Decision::Repeat { same: intent.has_body_of(stored) },
            (None, Some(first)) => Decision::Repeat { same: intent.has_body_of_new(first) },
            (None, None) => decide_new(payments.get_mut(&intent.payment_id), intent),
        };
        if matches!(decision, Decision::New) {
            first_in_batch.insert(&intent.intent_id, intent);
            let sum = reserved.entry(&intent.payment_id).or_default();
            *sum = sum.saturating_add(intent.amount.minor);
        }
        decisions.push(decision);
    }

    let wanted: Vec<_> = first_in_batch.values().map(|intent| intent_insert(intent)).collect();
    if !wanted.is_empty() {
        insert(connection, now, &wanted, &reserved).await?;
    }
    let stored = intents_by_id(connection, &ids).await?;
    let row = |id: &IntentId| {
        let found = stored.get(id).cloned().map(Box::new);
        found.ok_or_else(|| StoreError::Unreadable(format!("{id} was just written and is not there")))
    };
    let mut results = Vec::with_capacity(given.len());
    for (intent, decision) in given.iter().zip(decisions) {
        results.push(match decision {
            Decision::New => SubmitResult::Created(row(&intent.intent_id)?),
            Decision::Repeat { same: true } => SubmitResult::Same(row(&intent.intent_id)?),
            Decision::Repeat { same: false } => SubmitResult::Conflict(row(&intent.intent_id)?),
            Decision::Refused(result) => result,
        });
    }
    Ok(results)
}

/// Checks an intent against its payment and takes its amount from what may still be refunded.
fn decide_new(payment: Option<&mut Payment>, intent: &NewIntent) -> Decision {
    let Some(payment) = payment else { return Decision::Refused(SubmitResult::UnknownPayment) };
    if !intent.is_of(payment) {
        let payment_currency = payment.captured.currency.to_string();
        return Decision::Refused(SubmitResult::PaymentMismatch { payment_currency });
    }
    let refundable_minor = payment.refundable_minor();
    if intent.amount.minor > refundable_minor {
        return Decision::Refused(SubmitResult::ExceedsRefundable { refundable_minor });
    }
    payment.reserved_minor = payment.reserved_minor.saturating_add(intent.amount.minor);
    Decision::New
}

fn intent_insert(intent: &NewIntent) -> IntentInsert<'_> {
    IntentInsert {
        intent_id: intent.intent_id.as_str(),
        payment_id: intent.payment_id.as_str(),
        psp: &intent.psp,
        psp_account: &intent.psp_account,
        psp_payment_ref: &intent.psp_payment_ref,
        merchant_reference: intent.merchant_reference.as_deref(),
        refund_reason: intent.refund_reason.as_deref(),
        currency: intent.amount.currency.as_str(),
        amount_minor: intent.amount.minor,
        idempotency_key: &intent.idempotency_key,
        create_body: hexadecimal(&intent.create_body),
        due_at: intent.due_at.map(|at| at.timestamp_micros()),
    }
}

async fn insert(
    connection: &mut SqliteConnection,
    now: i64,
    wanted: &[IntentInsert<'_>],
    reserved: &BTreeMap<&PaymentId, i64>,
) -> Result<(), StoreError> {
    let done = sqlx::query(INTENTS_INSERT)
        .bind(array(wanted)?)
        .bind(now)
        .bind(MACHINE_VERSION)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    expect_rows("intents inserted", done.rows_affected(), wanted.len())?;
    let reservations: Vec<_> = reserved
        .iter()
        .map(|(payment_id, amount_minor)| Reservation { payment_id: payment_id.as_str(), amount_minor: *amount_minor })
        .collect();
    let done =
        sqlx::query(PAYMENTS_RESERVE).bind(array(&reservations)?).execute(connection).await.map_err(store_error)?;
    expect_rows("payments reserved", done.rows_affected(), reservations.len())
}

async fn intents_by_id(connection: &mut SqliteConnection, ids: &str) -> Result<BTreeMap<IntentId, Intent>, StoreError> {
    let found = intents(connection, ids).await?;
    Ok(found.into_iter().map(|intent| (intent.intent_id.clone(), intent)).collect())
}
