//! Finds due intents of one provider and claims their leases: step 1.
//!
//! Room and rate are taken before anything is claimed; the call's slot is taken by the installer, while the next are claimed. Intents whose lease someone else holds are left out for a moment, so that replicas
//! that see the same rows do not keep asking for them.

use super::hold::Held;
use super::slots::Slot;
use super::{Link, Shared, advance};
use crate::clock::Boottime;
use crate::lease::session::Session;
use crate::lease::{LeaseError, intent_key};
use crate::store::{BATCH_MAX, DueQuery, StoreError};
use jobs::ids::IntentId;
use jobs::refund::intent::MACHINE_VERSION;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long an intent is left out after someone else was seen to hold it, or its write failed.
const LEFT_OUT_FOR: Duration = Duration::from_millis(500);
/// Most intents left out at once; beyond it the oldest are asked for again.
const LEFT_OUT_MAX: usize = BATCH_MAX / 2;
/// How often open steps of dead sessions are looked for.
const ORPHANS_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
enum IntakeError {
    #[error("cannot look for due refunds")]
    Due(#[from] StoreError),
    #[error("cannot claim leases")]
    Claim(#[from] LeaseError),
}

/// What one intake remembers between rounds; nothing of it matters across a crash.
#[derive(Debug, Default)]
struct Memory {
    left_out: BTreeMap<IntentId, Boottime>,
    orphans_at: Option<Boottime>,
}

pub(super) async fn run(shared: Arc<Shared>, link: Arc<Link>) {
    let mut memory = Memory::default();
    let mut wake = shared.wake.listen();
    let mut backoff = Duration::from_millis(100);
    while !shared.conditions.is_stopping() {
        let Some(session) = shared.keeper.current() else {
            pause(&shared, shared.options.poll.min(Duration::from_millis(100))).await;
            continue;
        };
        let room = tokio::select! {
            biased;
            () = shared.conditions.stopping() => return,
            room = link.room.take(shared.options.batch, shared.options.linger) => room,
        };
        wake.look();
        match round(&shared, &link, &session, room, &mut memory).await {
            Ok(Round::MoreWaits) => backoff = Duration::from_millis(100),
            Ok(Round::NothingMore) => {
                backoff = Duration::from_millis(100);
                tokio::select! {
                    biased;
                    () = shared.conditions.stopping() => return,
                    () = wake.nudged() => {}
                    () = tokio::time::sleep(shared.options.poll) => {}
                }
            }
            Err(error) => {
                tracing::warn!(psp = link.psp, error = %crate::report(&error), "intake failed; trying again");
                pause(&shared, backoff).await;
                backoff = (backoff * 2).min(Duration::from_secs(5));
            }
        }
    }
}

async fn pause(shared: &Shared, duration: Duration) {
    tokio::select! {
        biased;
        () = shared.conditions.stopping() => {}
        () = tokio::time::sleep(duration) => {}
    }
}

enum Round {
    MoreWaits,
    NothingMore,
}

async fn round(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    session: &Arc<Session>,
    room: Vec<Slot>,
    memory: &mut Memory,
) -> Result<Round, IntakeError> {
    let now = shared.clock.boottime();
    memory.left_out.retain(|_, until| *until > now);
    let looks_for_orphans = memory.orphans_at.is_none_or(|at| now >= at);
    if looks_for_orphans {
        memory.orphans_at = Some(now.plus(ORPHANS_EVERY));
        shared.conditions.observe_database_time(shared.store.now().await?);
    }
    // Read in every round: a refund submitted after a pause must find it.
    let pauses = shared.store.psp_pauses().await?;
    shared.conditions.set_paused(pauses.into_iter().map(|pause| pause.psp).collect());
    let rate = link.rate.take(room.len(), now);
    let wanted = if rate == 0 { room.len() } else { rate };
    let query = DueQuery {
        psp: link.psp.clone(),
        psp_account: link.account.clone(),
        creates_allowed: rate > 0 && shared.conditions.creates_allowed(&link.psp),
        machine_version: MACHINE_VERSION,
        live_sessions: looks_for_orphans
            .then(|| shared.keeper.live_sessions())
            .filter(|live| live.refreshed_at.is_some())
            .map(|live| live.sessions),
        limit: (wanted + memory.left_out.len()).min(BATCH_MAX),
    };
    let mut due = shared.store.due(&query).await?;
    let found = due.len();
    due.retain(|id| !memory.left_out.contains_key(id));
    due.truncate(wanted);
    link.rate.give_back(rate.saturating_sub(due.len()));
    if due.is_empty() {
        return Ok(Round::NothingMore);
    }
    let holds = claim(shared, link, session, room, due, memory).await?;
    if holds.is_empty() {
        return Ok(if found >= query.limit { Round::MoreWaits } else { Round::NothingMore });
    }
    for held in holds {
        advance::enqueue(shared, held).await;
    }
    Ok(if found >= query.limit.min(wanted) { Round::MoreWaits } else { Round::NothingMore })
}

async fn claim(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    session: &Arc<Session>,
    room: Vec<Slot>,
    due: Vec<IntentId>,
    memory: &mut Memory,
) -> Result<Vec<Held>, LeaseError> {
    let keys: Vec<_> = due.iter().map(intent_key).collect();
    let leases = session.claim(&keys).await?;
    let left_out_until = shared.clock.boottime().plus(LEFT_OUT_FOR);
    let mut holds = Vec::with_capacity(due.len());
    for ((intent_id, lease), room) in due.into_iter().zip(leases).zip(room) {
        if memory.left_out.len() < LEFT_OUT_MAX && (lease.is_none() || shared.poison.is_failing(&intent_id)) {
            memory.left_out.insert(intent_id.clone(), left_out_until);
        }
        let Some(lease) = lease else { continue };
        holds.push(Held {
            intent_id,
            lease,
            link: link.clone(),
            steps: 0,
            slot: None,
            _room: room,
            _in_hand: shared.in_hand(),
        });
    }
    Ok(holds)
}
