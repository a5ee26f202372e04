//! Placeholders with their reservations, one transaction for a batch.
//!
//! Steps: lock the payments in id order; insert what fits; reserve for what was inserted. A repeat is found by the insert itself
//! (ON CONFLICT), so the usual batch needs no look for earlier rows: a batch that fits when all of it counts as new also fits when
//! some of it was there. Only when something does not fit are the earlier rows read first, to count without them; they are read
//! after the locks, so a repeat that came in meanwhile is seen. A row lost to a submit of the same id under another payment has
//! weighed on its neighbours wrongly: everything is undone and decided again.

use super::call::Calls;
use super::evidence::check_all_written;
use super::failure::Failure;
use super::rows::{self, intent_columns};
use crate::store::StoreError;
use crate::store::submit::{NewIntent, SubmitResult};
use jobs::ids::{IntentId, PaymentId};
use jobs::refund::intent::{Intent, MACHINE_VERSION};
use sqlx::postgres::PgConnection;
use sqlx::{Row, query};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PAYMENTS_LOCK: &str = "
    SELECT p.payment_id, p.psp, p.psp_account, p.psp_payment_ref, p.currency,
           p.captured_minor - p.charged_back_minor - p.refunded_minor - p.reserved_minor
    FROM unnest($1::text[]) AS l(payment_id) JOIN payments p ON p.payment_id = l.payment_id
    FOR NO KEY UPDATE OF p";

const INTENTS_BY_ID: &str = concat!(
    "SELECT ",
    intent_columns!(),
    " FROM unnest($1::text[]) AS l(intent_id) JOIN refund_intents i ON i.intent_id = l.intent_id"
);

const INTENTS_ADD: &str = include_str!("sql/intents_add.sql");

const PAYMENTS_RESERVE: &str = "
    UPDATE payments AS p SET reserved_minor = p.reserved_minor + d.amount
    FROM unnest($1::text[], $2::bigint[]) AS d(payment_id, amount) WHERE p.payment_id = d.payment_id";

/// A payment under lock.
struct Locked {
    psp: String,
    psp_account: String,
    psp_payment_ref: String,
    currency: String,
    refundable_minor: i64,
}

/// What to answer for one intent, before the insert has spoken.
enum Decision {
    Insert,
    /// It was there, or comes twice in this batch: answered from what is stored.
    Repeat,
    Refuse(SubmitResult),
}

pub(super) async fn submit(calls: &Calls, intents: &[NewIntent]) -> Result<Vec<SubmitResult>, StoreError> {
    if intents.is_empty() {
        return Ok(Vec::new());
    }
    let intents: Arc<[NewIntent]> = intents.into();
    calls
        .write("submit", move |connection| {
            let intents = Arc::clone(&intents);
            Box::pin(async move { submit_once(connection, &intents).await })
        })
        .await
}

async fn submit_once(connection: &mut PgConnection, intents: &[NewIntent]) -> Result<Vec<SubmitResult>, Failure> {
    let payments = lock_payments(connection, intents).await?;
    let mut known = BTreeMap::new();
    let mut decisions = decide(intents, &payments, &known);
    // A row that the table will refuse is refused even where it repeats a known one, so known ones must be told apart first.
    let all_fit =
        intents.iter().all(is_well_formed) && decisions.iter().all(|decision| !matches!(decision, Decision::Refuse(_)));
    if !all_fit {
        known = read_intents(connection, intents.iter().map(|new| new.intent_id.as_str()).collect()).await?;
        decisions = decide(intents, &payments, &known);
    }
    let chosen: Vec<&NewIntent> = {
        let wanted = intents.iter().zip(&decisions).filter(|(_, decision)| matches!(decision, Decision::Insert));
        let mut chosen: Vec<&NewIntent> = wanted.map(|(new, _)| new).collect();
        chosen.sort_by(|a, b| a.intent_id.cmp(&b.intent_id));
        chosen
    };
    let created = insert(connection, &chosen).await?;
    if !all_fit && created.len() < chosen.len() {
        return Err(Failure::Again("the same intents are submitted too often at once"));
    }
    reserve(connection, created.values().map(|(new, _)| *new)).await?;
    let unseen: Vec<&str> = intents
        .iter()
        .zip(&decisions)
        .filter(|(new, decision)| {
            !matches!(decision, Decision::Refuse(_))
                && !created.contains_key(&new.intent_id)
                && !known.contains_key(&new.intent_id)
        })
        .map(|(new, _)| new.intent_id.as_str())
        .collect();
    if !unseen.is_empty() {
        known.extend(read_intents(connection, unseen).await?);
    }
    answer(intents, decisions, &created, &known)
}

/// What the constraints of the table say.
fn is_well_formed(new: &NewIntent) -> bool {
    new.amount.minor > 0 && (1..=45).contains(&new.idempotency_key.chars().count())
}

async fn lock_payments(
    connection: &mut PgConnection,
    intents: &[NewIntent],
) -> Result<BTreeMap<PaymentId, Locked>, Failure> {
    let ids: BTreeSet<&str> = intents.iter().map(|new| new.payment_id.as_str()).collect();
    let rows = query(PAYMENTS_LOCK).bind(ids.into_iter().collect::<Vec<_>>()).fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            let locked = Locked {
                psp: row.try_get(1)?,
                psp_account: row.try_get(2)?,
                psp_payment_ref: row.try_get(3)?,
                currency: row.try_get(4)?,
                refundable_minor: row.try_get(5)?,
            };
            Ok((PaymentId::from_stored(row.try_get(0)?), locked))
        })
        .collect()
}

async fn read_intents(connection: &mut PgConnection, ids: Vec<&str>) -> Result<BTreeMap<IntentId, Intent>, Failure> {
    let rows = query(INTENTS_BY_ID).bind(ids).fetch_all(connection).await?;
    rows.iter().map(|row| rows::intent(row).map(|intent| (intent.intent_id.clone(), intent))).collect()
}

/// In the order given: each sees the reservations of those before it. The guard against refunding too much is here.
fn decide(
    intents: &[NewIntent],
    payments: &BTreeMap<PaymentId, Locked>,
    known: &BTreeMap<IntentId, Intent>,
) -> Vec<Decision> {
    let mut left: BTreeMap<&PaymentId, i64> =
        payments.iter().map(|(id, locked)| (id, locked.refundable_minor)).collect();
    let mut inserted = BTreeSet::new();
    let mut one = |new: &NewIntent| -> Decision {
        if known.contains_key(&new.intent_id) || inserted.contains(&new.intent_id) {
            return Decision::Repeat;
        }
        let Some((payment, left)) = payments.get(&new.payment_id).zip(left.get_mut(&new.payment_id)) else {
            return Decision::Refuse(SubmitResult::UnknownPayment);
        };
        let same_place = (&payment.psp, &payment.psp_account, &payment.psp_payment_ref)
            == (&new.psp, &new.psp_account, &new.psp_payment_ref);
        if !same_place || payment.currency != new.amount.currency.as_str() {
            return Decision::Refuse(SubmitResult::PaymentMismatch { payment_currency: payment.currency.clone() });
        }
        if new.amount.minor > *left {
            return Decision::Refuse(SubmitResult::ExceedsRefundable { refundable_minor: *left });
        }
        // An amount below zero gets as far as the constraint that refuses it.
        *left = left.saturating_sub(new.amount.minor);
        inserted.insert(new.intent_id.clone());
        Decision::Insert
    };
    intents.iter().map(&mut one).collect()
}

/// Inserts in id order what is not there, and returns what it inserted.
async fn insert<'a>(
    connection: &mut PgConnection,
    chosen: &[&'a NewIntent],
) -> Result<BTreeMap<&'a IntentId, (&'a NewIntent, Intent)>, Failure> {
    if chosen.is_empty() {
        return Ok(BTreeMap::new());
    }
    let each = || chosen.iter();
    let rows = query(INTENTS_ADD)
        .bind(each().map(|n| n.intent_id.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.payment_id.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.psp.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.psp_account.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.psp_payment_ref.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.merchant_reference.as_deref()).collect::<Vec<_>>())
        .bind(each().map(|n| n.refund_reason.as_deref()).collect::<Vec<_>>())
        .bind(each().map(|n| n.amount.currency.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.amount.minor).collect::<Vec<_>>())
        .bind(each().map(|n| n.idempotency_key.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.create_body.as_slice()).collect::<Vec<_>>())
        .bind(each().map(|n| n.due_at).collect::<Vec<_>>())
        .bind(MACHINE_VERSION)
        .fetch_all(connection)
        .await?;
    let mut created = BTreeMap::new();
    for row in &rows {
        let id: &str = row.try_get(0)?;
        let new = chosen
            .binary_search_by(|new| new.intent_id.as_str().cmp(id))
            .ok()
            .and_then(|place| chosen.get(place))
            .ok_or_else(|| rows::unreadable("inserted intent", id))?;
        created.insert(&new.intent_id, (*new, new.placeholder(row.try_get(1)?, row.try_get(3)?, row.try_get(2)?)));
    }
    Ok(created)
}

async fn reserve(connection: &mut PgConnection, created: impl Iterator<Item = &NewIntent>) -> Result<(), Failure> {
    let mut amounts: BTreeMap<&str, i64> = BTreeMap::new();
    for new in created {
        let amount = amounts.entry(new.payment_id.as_str()).or_default();
        *amount = amount.saturating_add(new.amount.minor);
    }
    if amounts.is_empty() {
        return Ok(());
    }
    let done = query(PAYMENTS_RESERVE)
        .bind(amounts.keys().copied().collect::<Vec<_>>())
        .bind(amounts.values().copied().collect::<Vec<_>>())
        .execute(connection)
        .await?;
    check_all_written("payments", done.rows_affected(), amounts.len())
}

fn answer(
    intents: &[NewIntent],
    decisions: Vec<Decision>,
    created: &BTreeMap<&IntentId, (&NewIntent, Intent)>,
    known: &BTreeMap<IntentId, Intent>,
) -> Result<Vec<SubmitResult>, Failure> {
    let mut answers = Vec::with_capacity(intents.len());
    for (new, decision) in intents.iter().zip(decisions) {
        let stored = created.get(&new.intent_id).map(|(_, intent)| intent);
        answers.push(match (decision, stored) {
            (Decision::Refuse(refusal), _) => refusal,
            (Decision::Insert, Some(intent)) => SubmitResult::Created(Box::new(intent.clone())),
            (_, stored) => {
                let intent = stored
                    .or_else(|| known.get(&new.intent_id))
                    .ok_or_else(|| rows::unreadable("repeated intent", new.intent_id.as_str()))?;
                repeat(new, intent)
            }
        });
    }
    Ok(answers)
}

fn repeat(new: &NewIntent, intent: &Intent) -> SubmitResult {
    let same = new.has_body_of(intent);
    let intent = Box::new(intent.clone());
    if same { SubmitResult::Same(intent) } else { SubmitResult::Conflict(intent) }
}
