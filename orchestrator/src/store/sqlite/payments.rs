//! Payments to refund from. One that is there with the same fields is left as it is, one with others is reported.

use super::connect::store_error;
use super::rows::{self, PaymentRow};
use super::statement::{array, expect_rows, now_micros};
use crate::store::StoreError;
use crate::store::read::Payment;
use crate::store::submit::{ImportResult, NewPayment};
use jobs::ids::PaymentId;
use serde::Serialize;
use sqlx::SqliteConnection;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
struct PaymentInsert<'a> {
    payment_id: &'a str,
    psp: &'a str,
    psp_account: &'a str,
    psp_payment_ref: &'a str,
    merchant_reference: Option<&'a str>,
    currency: &'a str,
    captured_minor: i64,
    charged_back_minor: i64,
}

/// Payments whose name at the provider is among those given, under whatever id.
const PAYMENTS_SELECT_BY_PSP: &str = "
    SELECT p.* FROM json_each(?1) AS j CROSS JOIN payments AS p
        ON p.psp = j.value ->> 'psp' AND p.psp_account = j.value ->> 'psp_account' AND p.psp_payment_ref = j.value ->> 'psp_payment_ref'";

const PAYMENTS_INSERT: &str = "
    INSERT INTO payments (payment_id, psp, psp_account, psp_payment_ref, merchant_reference, currency, captured_minor,
        charged_back_minor, created_at)
    SELECT value ->> 'payment_id', value ->> 'psp', value ->> 'psp_account', value ->> 'psp_payment_ref',
        value ->> 'merchant_reference', value ->> 'currency', value ->> 'captured_minor', value ->> 'charged_back_minor', ?2
    FROM json_each(?1)
    WHERE NOT EXISTS (SELECT 1 FROM payments AS p WHERE p.payment_id = value ->> 'payment_id')";

/// Adds payments that are not there yet.
pub(super) async fn import_payments(
    connection: &mut SqliteConnection,
    given: Vec<NewPayment>,
) -> Result<Vec<ImportResult>, StoreError> {
    let now = now_micros(connection).await?;
    let created_at = rows::time("now", now)?;
    let inserts: Vec<_> = given.iter().map(payment_insert).collect();
    let mut known = payments_by_id(connection, given.iter().map(|payment| &payment.payment_id)).await?;
    let taken: Vec<PaymentRow> = sqlx::query_as(PAYMENTS_SELECT_BY_PSP)
        .bind(array(&inserts)?)
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let mut names: BTreeMap<_, _> = rows::all::<_, Payment>(taken)?
        .into_iter()
        .map(|payment| ((payment.psp, payment.psp_account, payment.psp_payment_ref), payment.payment_id))
        .collect();
    let mut results = Vec::with_capacity(given.len());
    let mut wanted = Vec::new();
    for (payment, insert) in given.iter().zip(inserts) {
        let name = (payment.psp.clone(), payment.psp_account.clone(), payment.psp_payment_ref.clone());
        results.push(match known.get(&payment.payment_id) {
            Some(stored) if payment.is_same(stored) => ImportResult::Same,
            Some(_) => ImportResult::Conflict,
            None if names.contains_key(&name) => ImportResult::Conflict,
            None => {
                names.insert(name, payment.payment_id.clone());
                known.insert(payment.payment_id.clone(), payment.as_stored(created_at));
                wanted.push(insert);
                ImportResult::Inserted
            }
        });
    }
    let done = sqlx::query(PAYMENTS_INSERT)
        .bind(array(&wanted)?)
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    expect_rows("payments inserted", done.rows_affected(), wanted.len())?;
    Ok(results)
}

fn payment_insert(payment: &NewPayment) -> PaymentInsert<'_> {
    PaymentInsert {
        payment_id: payment.payment_id.as_str(),
        psp: &payment.psp,
        psp_account: &payment.psp_account,
        psp_payment_ref: &payment.psp_payment_ref,
        merchant_reference: payment.merchant_reference.as_deref(),
        currency: payment.captured.currency.as_str(),
        captured_minor: payment.captured.minor,
        charged_back_minor: payment.charged_back_minor,
    }
}

const PAYMENTS_SELECT: &str = "SELECT * FROM payments WHERE payment_id IN (SELECT value FROM json_each(?1))";

/// The payments that are there, by id.
pub(super) async fn payments_by_id(
    connection: &mut SqliteConnection,
    ids: impl Iterator<Item = &PaymentId>,
) -> Result<BTreeMap<PaymentId, Payment>, StoreError> {
    let ids: Vec<&PaymentId> = ids.collect();
    let found: Vec<PaymentRow> =
        sqlx::query_as(PAYMENTS_SELECT).bind(array(&ids)?).fetch_all(connection).await.map_err(store_error)?;
    Ok(rows::all::<_, Payment>(found)?.into_iter().map(|payment| (payment.payment_id.clone(), payment)).collect())
}
