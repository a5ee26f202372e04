//! Takes held intents one step further: a slot, read after the claim, plan, install (step 2).
//!
//! One installer per provider, so that one that is slow holds up nobody else. While it waits for slots the intake claims on.
//! A plan without a call is written whole. A plan with a call installs the attempt first; only a written install is called. An
//! install whose commit was not answered is dropped without a call: if it took effect, the next holder looks up.

use super::call::InCall;
use super::hold::Held;
use super::write::{self, Written, Wrote};
use super::{Link, STEPS_PER_HOLD_MAX, Shared, read};
use crate::store::change::{Change, FenceGuard, WriteResult};
use jobs::ids::IntentId;
use jobs::refund::intent::IntentFile;
use jobs::refund::plan::{CallPlan, Caller, Circumstances, Plan, plan};
use jobs::refund::state::State;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Longest that held intents wait for a slot; then they are let go, so that a replica with free slots can have them.
const SLOT_WAIT_MAX: Duration = Duration::from_millis(500);

/// Hands a hold to its provider's installer.
pub(super) async fn enqueue(shared: &Shared, mut held: Held) {
    held.slot = None;
    let link = held.link.clone();
    if let Err(refused) = link.to_install.send(held).await {
        write::let_go(shared, vec![refused.0]).await;
    }
}

/// Installs the steps of one provider's holds, as many at once as slots are free.
pub(super) async fn run(shared: Arc<Shared>, link: Arc<Link>, mut queue: mpsc::Receiver<Held>) {
    let mut waiting: Vec<Held> = Vec::new();
    loop {
        if waiting.is_empty() && queue.recv_many(&mut waiting, shared.options.batch).await == 0 {
            return;
        }
        let slots = tokio::select! {
            biased;
            () = shared.conditions.stopping() => Vec::new(),
            slots = link.slots.take(waiting.len(), shared.options.linger) => slots,
            () = tokio::time::sleep(SLOT_WAIT_MAX) => Vec::new(),
        };
        if slots.is_empty() {
            write::let_go(&shared, std::mem::take(&mut waiting)).await;
            continue;
        }
        let mut batch: Vec<Held> = waiting.drain(..slots.len()).collect();
        for (held, slot) in batch.iter_mut().zip(slots) {
            held.slot = Some(slot);
        }
        advance(&shared, batch).await;
    }
}

/// What a planned hold becomes once its change is written.
enum Planned {
    Call(Box<CallPlan>, Caller, Box<IntentFile>),
    /// From this state.
    Write(State),
}

async fn advance(shared: &Arc<Shared>, holds: Vec<Held>) {
    let Some((loaded, holds)) = read::read(shared, holds).await else { return };
    shared.conditions.observe_database_time(loaded.now);
    let mut files: BTreeMap<IntentId, IntentFile> =
        loaded.files.into_iter().map(|file| (file.intent.intent_id.clone(), file)).collect();
    let mut planned = Vec::with_capacity(holds.len());
    let mut changes = Vec::with_capacity(holds.len());
    let mut idle = Vec::new();
    for mut held in holds {
        let file = files.remove(&held.intent_id);
        match file.and_then(|file| plan_one(shared, &mut held, file, loaded.timeline)) {
            Some((change, what)) => {
                changes.push(change);
                planned.push((held, what));
            }
            None => idle.push(held),
        }
    }
    write::let_go(shared, idle).await;
    let results = write::apply(shared, &changes).await;
    let mut wrote = Vec::new();
    let mut lost = Vec::new();
    for (((held, what), change), result) in planned.into_iter().zip(changes).zip(results) {
        match (result, what) {
            (Written::Yes, Planned::Call(call_plan, caller, file)) => {
                if let Some(ended_at) = file.intent.holder_session.and_then(|before| shared.keeper.ended_at(before)) {
                    shared.metrics.lease_taken_over(shared.clock.boottime().saturating_since(ended_at));
                }
                dispatch(shared, InCall::new(held, *call_plan, caller, *file, loaded.timeline)).await;
            }
            (Written::Yes, Planned::Write(before)) => wrote.push(Wrote { held, change, before }),
            (Written::No(WriteResult::StaleToken), _) => {
                shared.metrics.fence_rejected("intent", 1);
                lost.push(held);
            }
            (Written::No(_) | Written::Unknown | Written::Failed, _) => lost.push(held),
        }
    }
    write::let_go(shared, lost).await;
    write::after(shared, wrote).await;
}

async fn dispatch(shared: &Shared, in_call: InCall) {
    if shared.to_call.send(in_call).await.is_err() {
        tracing::debug!("the call loop is gone; the successor looks this refund up");
    }
}

fn plan_one(shared: &Shared, held: &mut Held, file: IntentFile, timeline: i64) -> Option<(Change, Planned)> {
    if held.steps >= STEPS_PER_HOLD_MAX {
        return None;
    }
    let circumstances = Circumstances {
        now: shared.conditions.now(),
        timeline,
        creates_allowed: shared.conditions.creates_allowed(&held.link.psp),
    };
    let plan = match shared.poison.parks(&file.intent) {
        Some(parked) => parked,
        None => plan(&file, &held.link.capabilities, circumstances),
    };
    let guard = if held.steps == 0 { FenceGuard::Below } else { FenceGuard::Equal };
    held.steps += 1;
    held.lease.begin_step();
    if !held.lease.is_good() {
        return None;
    }
    match plan {
        Plan::LeaveAlone(_) => None,
        Plan::Write(write_plan) => Some((
            write::change_without_call(&file.intent, &held.lease, guard, *write_plan),
            Planned::Write(file.intent.state),
        )),
        Plan::Call(call_plan) => {
            let caller = Caller {
                attempt_id: shared.randomness.attempt_id(),
                token: held.lease.token(),
                session: held.lease.session_id(),
            };
            let change = write::install(&file.intent, caller, guard, &call_plan);
            Some((change, Planned::Call(call_plan, caller, Box::new(file))))
        }
    }
}
