//! The write path of intents: changes in, what became of each out. One transaction.
//!
//! Steps: leave out changes whose inbox rows were read already; one guarded UPDATE that takes the locks in id order and returns the
//! winners; their evidence (`evidence`), only of the kinds there are; the payments whose counters move. The losers are read again to
//! tell a stale token from a moved state. A batch that names an intent twice is applied in rounds, as if sent one after the other.

use super::call::Calls;
use super::evidence;
use super::failure::Failure;
use super::rows;
use crate::store::StoreError;
use crate::store::change::{Change, FenceGuard, WriteResult};
use jobs::ids::Token;
use jobs::money::Currency;
use jobs::refund::state::CountsAs;
use sqlx::postgres::PgConnection;
use sqlx::{Row, query};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const INTENTS_CHANGE: &str = include_str!("sql/intents_change.sql");

const INTENTS_GUARDS: &str = "
    SELECT i.intent_id, i.fence_epoch, i.fence_counter
    FROM unnest($1::text[]) AS l(intent_id) JOIN refund_intents i ON i.intent_id = l.intent_id";

const EPOCH_CURRENT: &str = "SELECT max(epoch) FROM lease_epochs WHERE superseded_at IS NULL";

const PAYMENTS_COUNT: &str = "
    UPDATE payments AS p
    SET reserved_minor = p.reserved_minor + d.reserved, refunded_minor = p.refunded_minor + d.refunded
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS d(payment_id, reserved, refunded)
    WHERE p.payment_id = d.payment_id";

/// A change that won, with what its evidence needs of the row.
pub(super) struct Winner<'a> {
    pub(super) change: &'a Change,
    pub(super) payment_id: String,
    pub(super) psp: String,
    pub(super) amount_minor: i64,
    pub(super) currency: Currency,
    counted_as: CountsAs,
}

pub(super) async fn apply(calls: &Calls, changes: &[Change]) -> Result<Vec<WriteResult>, StoreError> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let changes: Arc<[Change]> = changes.into();
    calls
        .write("apply changes", move |connection| {
            let changes = Arc::clone(&changes);
            Box::pin(async move {
                let mut results = vec![WriteResult::StateMoved; changes.len()];
                for round in rounds(&changes) {
                    apply_round(connection, &changes, round, &mut results).await?;
                }
                Ok(results)
            })
        })
        .await
}

/// Indices sorted by intent id, each id once in a round; nearly always one round.
fn rounds(changes: &[Change]) -> Vec<Vec<usize>> {
    let mut sorted: Vec<usize> = (0..changes.len()).collect();
    sorted.sort_by(|a, b| changes[*a].intent_id.cmp(&changes[*b].intent_id));
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut repeat = 0;
    for (place, index) in sorted.iter().enumerate() {
        let same = place > 0 && changes[sorted[place - 1]].intent_id == changes[*index].intent_id;
        repeat = if same { repeat + 1 } else { 0 };
        match rounds.get_mut(repeat) {
            Some(round) => round.push(*index),
            None => rounds.push(vec![*index]),
        }
    }
    rounds
}

async fn apply_round(
    connection: &mut PgConnection,
    changes: &[Change],
    round: Vec<usize>,
    results: &mut [WriteResult],
) -> Result<(), Failure> {
    let inbox_gone = evidence::inbox_already_read(connection, changes, &round).await?;
    let candidates: Vec<usize> = round.iter().copied().filter(|index| !inbox_gone.contains(index)).collect();
    let winners = change_intents(connection, changes, &candidates).await?;
    let won: BTreeSet<usize> = winners.iter().map(|(index, _)| *index).collect();
    for index in &won {
        results[*index] = WriteResult::Written;
    }
    let winners: Vec<Winner<'_>> = winners.into_iter().map(|(_, winner)| winner).collect();
    evidence::write(connection, &winners).await?;
    count_payments(connection, &winners).await?;
    let lost: Vec<usize> = round.into_iter().filter(|index| !won.contains(index)).collect();
    if lost.is_empty() { Ok(()) } else { tell_losers(connection, changes, &lost, results).await }
}

async fn change_intents<'a>(
    connection: &mut PgConnection,
    changes: &'a [Change],
    candidates: &[usize],
) -> Result<Vec<(usize, Winner<'a>)>, Failure> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let chosen = || candidates.iter().map(|index| &changes[*index]);
    let rows = query(INTENTS_CHANGE)
        .bind(chosen().map(|c| c.intent_id.as_str()).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.expected_version).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.token.epoch).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.token.counter).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.fence_guard == FenceGuard::Below).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.expected_open_attempt.map(|id| id.0)).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.state.as_str()).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.state_reason.as_deref()).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.psp_refund_ref.as_deref()).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.holder_session.map(|id| id.0)).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.open_attempt.map(|id| id.0)).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.next_action.as_str()).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.next_action_at).collect::<Vec<_>>())
        .bind(chosen().map(|c| c.rung).collect::<Vec<_>>())
        .fetch_all(&mut *connection)
        .await?;
    let mut winners = Vec::with_capacity(rows.len());
    for row in &rows {
        let position: i64 = row.try_get(0)?;
        let index = usize::try_from(position - 1)
            .ok()
            .and_then(|place| candidates.get(place).copied())
            .ok_or_else(|| StoreError::Unreadable(format!("position {position} of a change")))?;
        let winner = Winner {
            change: &changes[index],
            counted_as: rows::state(row.try_get(1)?)?.counts_as(),
            payment_id: row.try_get(2)?,
            psp: row.try_get(3)?,
            amount_minor: row.try_get(4)?,
            currency: rows::currency(row.try_get(5)?)?,
        };
        winners.push((index, winner));
    }
    Ok(winners)
}

/// Moves the counters of payments by what the winners' states changed, one row for each payment, in id order.
async fn count_payments(connection: &mut PgConnection, winners: &[Winner<'_>]) -> Result<(), Failure> {
    let mut moves: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for winner in winners {
        let (from, to) = (winner.counted_as, winner.change.state.counts_as());
        if from != to {
            let delta = moves.entry(&winner.payment_id).or_default();
            let weigh = |side: CountsAs| i64::from(to == side) - i64::from(from == side);
            let amount = winner.amount_minor;
            delta.0 = delta.0.saturating_add(amount.saturating_mul(weigh(CountsAs::Reserved)));
            delta.1 = delta.1.saturating_add(amount.saturating_mul(weigh(CountsAs::Refunded)));
        }
    }
    if moves.is_empty() {
        return Ok(());
    }
    let done = query(PAYMENTS_COUNT)
        .bind(moves.keys().copied().collect::<Vec<_>>())
        .bind(moves.values().map(|delta| delta.0).collect::<Vec<_>>())
        .bind(moves.values().map(|delta| delta.1).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    evidence::check_all_written("payments", done.rows_affected(), moves.len())
}

/// Reads the losers again. "Moved" is what they were preset to.
async fn tell_losers(
    connection: &mut PgConnection,
    changes: &[Change],
    lost: &[usize],
    results: &mut [WriteResult],
) -> Result<(), Failure> {
    let epoch: Option<i64> = query(EPOCH_CURRENT).fetch_one(&mut *connection).await?.try_get(0)?;
    let rows = query(INTENTS_GUARDS)
        .bind(lost.iter().map(|index| changes[*index].intent_id.as_str()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut fences: BTreeMap<&str, Token> = BTreeMap::new();
    for row in &rows {
        fences.insert(row.try_get(0)?, Token { epoch: row.try_get(1)?, counter: row.try_get(2)? });
    }
    for index in lost {
        let change = &changes[*index];
        let outrun = fences.get(change.intent_id.as_str()).is_some_and(|fence| *fence > change.token);
        if outrun || Some(change.token.epoch) != epoch {
            results[*index] = WriteResult::StaleToken;
        }
    }
    Ok(())
}
