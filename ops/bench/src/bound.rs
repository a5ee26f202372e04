//! What no engine can beat here: the same rows by arrays of 500 plus the provider calls; no leases, no machine, no planning.

use crate::Failure;
use crate::node::{self, Database};
use chrono::{DateTime, TimeDelta, Utc};
use jobs::ids::{AttemptId, SessionId, Token};
use jobs::refund::intent::{AttemptKind, Intent, NextAction};
use jobs::refund::outcome::Outcome;
use jobs::refund::state::State;
use orchestrator::psp::{CreateCall, Provider};
use orchestrator::store::Store;
use orchestrator::store::change::{Change, FenceGuard, NewAttempt, NewOutcome, TransferKind};
use orchestrator::store::submit::{NewIntent, SubmitResult};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use uuid::Uuid;

const ARRAY: usize = 500;
/// Arrays in the works at once: while one waits for the provider the next is written.
const AT_ONCE: usize = 4;

/// Refunds per second.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) async fn run(
    database: &Database,
    provider: &Arc<dyn Provider>,
    token: Token,
    intents: Vec<NewIntent>,
) -> Result<f64, Failure> {
    let count = intents.len();
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for array in intents.chunks(ARRAY).map(<[NewIntent]>::to_vec) {
        if tasks.len() == AT_ONCE
            && let Some(ended) = tasks.join_next().await
        {
            ended??;
        }
        tasks.spawn(one_array(database.store.clone(), provider.clone(), token, array));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

async fn one_array(
    store: Arc<dyn Store>,
    provider: Arc<dyn Provider>,
    token: Token,
    array: Vec<NewIntent>,
) -> Result<(), Failure> {
    let mut rows = Vec::with_capacity(array.len());
    for result in store.submit(&array).await? {
        let SubmitResult::Created(intent) = result else { return Err("a submit was not taken".into()) };
        rows.push(*intent);
    }
    let session = SessionId(Uuid::new_v4());
    let now = store.now().await?;
    let installs: Vec<Change> = rows.iter().map(|row| install(row, token, session, now)).collect();
    let _results = store.apply(&installs).await?;
    let mut calls = JoinSet::new();
    for (row, install) in rows.into_iter().zip(installs) {
        let provider = provider.clone();
        calls.spawn(async move {
            let call = CreateCall { intent: &row, time_limit: Duration::from_secs(60) };
            let outcome = provider.create(call).await;
            (install, outcome)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(ended) = calls.join_next().await {
        let (install, outcome) = ended?;
        outcomes.push(settle(install, outcome)?);
    }
    let _results = store.apply(&outcomes).await?;
    Ok(())
}

fn install(row: &Intent, token: Token, session: SessionId, now: DateTime<Utc>) -> Change {
    let attempt_id = AttemptId(Uuid::new_v4());
    let deadline = now + TimeDelta::seconds(60);
    Change {
        intent_id: row.intent_id.clone(),
        expected_version: row.version,
        token,
        fence_guard: FenceGuard::Below,
        expected_open_attempt: None,
        state: State::Sending,
        state_reason: None,
        psp_refund_ref: None,
        holder_session: Some(session),
        open_attempt: Some(attempt_id),
        next_action: NextAction::Lookup,
        next_action_at: Some(now + TimeDelta::seconds(75)),
        rung: 0,
        attempt: Some(NewAttempt {
            attempt_id,
            kind: AttemptKind::Create,
            started_at: now,
            deadline,
            key_expires_at: Some(now + TimeDelta::days(1)),
            absent_until: Some(deadline + TimeDelta::minutes(5)),
            grounds: None,
        }),
        outcomes: Vec::new(),
        transfer: None,
        breaks: Vec::new(),
        inbox_applied: Vec::new(),
    }
}

fn settle(install: Change, outcome: Outcome) -> Result<Change, Failure> {
    let Outcome::Accepted { refund } = &outcome else {
        return Err(format!("the mock did not accept: {outcome:?}").into());
    };
    let attempt_id = install.open_attempt.ok_or("an install has an attempt")?;
    Ok(Change {
        expected_version: install.expected_version + 1,
        fence_guard: FenceGuard::Equal,
        expected_open_attempt: install.open_attempt,
        state: State::Succeeded,
        psp_refund_ref: Some(refund.psp_refund_ref.clone()),
        holder_session: None,
        open_attempt: None,
        next_action: NextAction::None,
        next_action_at: None,
        attempt: None,
        outcomes: vec![NewOutcome { attempt_id, outcome, duration_ms: 1, late: false }],
        transfer: Some(TransferKind::Post),
        ..install
    })
}

/// Intents of its own, so that the run leaves the other measurements alone.
pub(crate) async fn measure(
    database: &Database,
    mock: &crate::mock::MockProcess,
    provider: &Arc<dyn Provider>,
    count: usize,
) -> Result<f64, Failure> {
    node::add_payments(database, mock, "bound", count).await?;
    let intents = node::intents(provider.as_ref(), "bound", count)?;
    let epoch = 1;
    run(database, provider, Token { epoch, counter: 1 }, intents).await
}
