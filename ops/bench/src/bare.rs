//! The yardstick: the same three transactions on the same schema and triggers, one refund each, in plain prepared SQL. No lease, no provider, no machine.

use crate::Failure;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use uuid::Uuid;

/// Refunds per second, best over the connection counts.
pub(crate) async fn best(url: &str, count: usize) -> Result<f64, Failure> {
    let mut best = 0.0_f64;
    for connections in [8, 32, 64] {
        let rate = run(url, connections, count).await?;
        eprintln!("bare SQL, {connections} connections: {rate:.0}/s");
        best = best.max(rate);
    }
    Ok(best)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
async fn run(url: &str, connections: u32, count: usize) -> Result<f64, Failure> {
    let options = PgConnectOptions::from_str(url)?;
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .min_connections(connections)
        .test_before_acquire(false)
        .connect_with(options)
        .await?;
    let name = format!("bare-{connections}-{}", Uuid::new_v4().simple());
    sqlx::query(
        "INSERT INTO payments (payment_id, psp, psp_account, psp_payment_ref, currency, captured_minor)
         SELECT $1 || '-' || n, 'bare', 'acct', $1 || '-' || n, 'EUR', 100000 FROM generate_series(0, $2) n",
    )
    .bind(&name)
    .bind(i64::try_from(count)?)
    .execute(&pool)
    .await?;
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (pool, next, name) = (pool.clone(), next.clone(), name.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<_, Failure>(());
                }
                one(&pool, &format!("{name}-{number}")).await?;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let rate = count as f64 / started.elapsed().as_secs_f64();
    pool.close().await;
    Ok(rate)
}

async fn one(pool: &PgPool, id: &str) -> Result<(), Failure> {
    let (attempt, session) = (Uuid::new_v4(), Uuid::new_v4());
    // One statement is one transaction and one round trip: the least that one refund at a time can cost.
    let submitted = sqlx::query(SUBMIT).bind(id).bind(BODY).execute(pool).await?;
    let installed = sqlx::query(INSTALL).bind(id).bind(session).bind(attempt).bind(BODY).execute(pool).await?;
    let posted = sqlx::query(OUTCOME).bind(id).bind(attempt).bind(DETAIL).execute(pool).await?;
    if (submitted.rows_affected(), installed.rows_affected(), posted.rows_affected()) != (1, 1, 1) {
        return Err(format!("refund {id} was not written whole").into());
    }
    Ok(())
}

const SUBMIT: &str = "
    WITH fits AS (
        UPDATE payments SET reserved_minor = reserved_minor + 100
        WHERE payment_id = $1 AND captured_minor - charged_back_minor - refunded_minor - reserved_minor >= 100
        RETURNING payment_id)
    INSERT INTO refund_intents (intent_id, payment_id, psp, psp_account, psp_payment_ref, currency, amount_minor, idempotency_key,
        create_body, machine_version, state, version, fence_epoch, fence_counter, stamp_epoch, stamp_counter, stamp_version,
        next_action, next_action_at, timeline)
    SELECT $1, payment_id, 'bare', 'acct', $1, 'EUR', 100, 'key-' || md5($1), $2, 1, 'recorded', 1, 0, 0, 0, 0, 1, 'create',
        clock_timestamp(), 1
    FROM fits";

const INSTALL: &str = "
    WITH won AS (
        UPDATE refund_intents SET state = 'sending', version = 2, fence_epoch = 1, fence_counter = 1, stamp_epoch = 1,
            stamp_counter = 1, stamp_version = 2, holder_session = $2, open_attempt = $3, next_action = 'lookup',
            next_action_at = clock_timestamp() + interval '75 s', updated_at = clock_timestamp()
        WHERE intent_id = $1 AND version = 1 AND (fence_epoch, fence_counter) < (1, 1)
        RETURNING intent_id, idempotency_key)
    INSERT INTO refund_attempts (attempt_id, intent_id, kind, token_epoch, token_counter, session_id, installed_version,
        idempotency_key, request_body, started_at, deadline, key_expires_at, absent_until)
    SELECT $3, intent_id, 'create', 1, 1, $2, 2, idempotency_key, $4, clock_timestamp(), clock_timestamp() + interval '60 s',
        clock_timestamp() + interval '1 day', clock_timestamp() + interval '6 min'
    FROM won";

const OUTCOME: &str = "
    WITH won AS (
        UPDATE refund_intents SET state = 'succeeded', psp_refund_ref = 're_' || md5($1), version = 3, stamp_version = 3,
            holder_session = NULL, open_attempt = NULL, next_action = 'none', next_action_at = NULL, updated_at = clock_timestamp()
        WHERE intent_id = $1 AND version = 2 AND (fence_epoch, fence_counter) = (1, 1) AND open_attempt = $2
        RETURNING intent_id, payment_id),
    told AS (
        INSERT INTO refund_outcomes (attempt_id, outcome, detail, duration_ms, late)
        SELECT $2, 'accepted', $3::jsonb, 3, false FROM won),
    counted AS (
        UPDATE payments SET reserved_minor = reserved_minor - 100, refunded_minor = refunded_minor + 100
        WHERE payment_id = (SELECT payment_id FROM won))
    INSERT INTO ledger_transfers (kind, intent_id, debit_account, credit_account, amount_minor, currency, fence_epoch, fence_counter)
    SELECT 'post', intent_id, 'customer_refunds:EUR', 'psp_clearing:bare:EUR', 100, 'EUR', 1, 1 FROM won";

const BODY: &[u8] =
    b"payment_intent=pi_0123456789abcdef01234567&amount=100&metadata%5Bintent_id%5D=bench-0123456789abcdef-000001";
const DETAIL: &str = r#"{"outcome":"accepted","refund":{"psp_refund_ref":"re_0123456789abcdef01234567","status":"succeeded","amount":{"minor":100,"currency":"EUR"},"reason":null}}"#;
