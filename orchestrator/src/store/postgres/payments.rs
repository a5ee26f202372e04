//! Payments: taken in once, never changed but in their counters.

use super::call::Calls;
use super::failure::Failure;
use super::rows::{self, payment_columns};
use crate::store::StoreError;
use crate::store::read::Payment;
use crate::store::submit::{ImportResult, NewPayment};
use jobs::ids::PaymentId;
use sqlx::postgres::PgConnection;
use sqlx::{Row, query};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PAYMENTS_ADD: &str = "
    INSERT INTO payments (payment_id, psp, psp_account, psp_payment_ref, merchant_reference, currency, captured_minor,
                          charged_back_minor)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[])
    ON CONFLICT DO NOTHING
    RETURNING payment_id";

const PAYMENTS_BY_ID: &str = concat!(
    "SELECT ",
    payment_columns!(),
    " FROM unnest($1::text[]) AS l(payment_id) JOIN payments p ON p.payment_id = l.payment_id"
);

pub(super) async fn import(calls: &Calls, payments: &[NewPayment]) -> Result<Vec<ImportResult>, StoreError> {
    if payments.is_empty() {
        return Ok(Vec::new());
    }
    let payments: Arc<[NewPayment]> = payments.into();
    calls
        .write("import payments", move |connection| {
            let payments = Arc::clone(&payments);
            Box::pin(async move { import_once(connection, &payments).await })
        })
        .await
}

async fn import_once(connection: &mut PgConnection, payments: &[NewPayment]) -> Result<Vec<ImportResult>, Failure> {
    let mut first_of_id: BTreeMap<&str, &NewPayment> = BTreeMap::new();
    for new in payments {
        first_of_id.entry(new.payment_id.as_str()).or_insert(new);
    }
    let each = || first_of_id.values();
    let rows = query(PAYMENTS_ADD)
        .bind(each().map(|n| n.payment_id.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.psp.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.psp_account.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.psp_payment_ref.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.merchant_reference.as_deref()).collect::<Vec<_>>())
        .bind(each().map(|n| n.captured.currency.as_str()).collect::<Vec<_>>())
        .bind(each().map(|n| n.captured.minor).collect::<Vec<_>>())
        .bind(each().map(|n| n.charged_back_minor).collect::<Vec<_>>())
        .fetch_all(&mut *connection)
        .await?;
    let mut inserted: BTreeSet<&str> = BTreeSet::new();
    for row in &rows {
        inserted.insert(row.try_get(0)?);
    }
    let stored = if inserted.len() == payments.len() {
        BTreeMap::new()
    } else {
        read(connection, first_of_id.keys().copied().collect()).await?
    };
    let mut one = |new: &NewPayment| {
        if inserted.remove(new.payment_id.as_str()) {
            return ImportResult::Inserted;
        }
        match stored.get(&new.payment_id) {
            Some(payment) if new.is_same(payment) => ImportResult::Same,
            _ => ImportResult::Conflict,
        }
    };
    Ok(payments.iter().map(&mut one).collect())
}

async fn read(connection: &mut PgConnection, ids: Vec<&str>) -> Result<BTreeMap<PaymentId, Payment>, Failure> {
    let rows = query(PAYMENTS_BY_ID).bind(ids).fetch_all(connection).await?;
    rows.iter().map(|row| rows::payment(row).map(|payment| (payment.payment_id.clone(), payment))).collect()
}

/// One payment, inside a call that reads more.
pub(super) async fn read_one(connection: &mut PgConnection, id: &PaymentId) -> Result<Option<Payment>, Failure> {
    Ok(read(connection, vec![id.as_str()]).await?.remove(id))
}

pub(super) async fn payment(calls: &Calls, id: &PaymentId) -> Result<Option<Payment>, StoreError> {
    let id = Arc::new(id.clone());
    calls
        .read("read a payment", move |connection| {
            let id = Arc::clone(&id);
            Box::pin(async move { read_one(connection, &id).await })
        })
        .await
}
