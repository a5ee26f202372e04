//! The guarded write. First every change is judged and its new row built; then all that won is written.
//!
//! A change that lost is answered and leaves the others alone. A change that won its guards but breaks a fence or a constraint
//! fails the whole batch, as it would in a database.

use super::fences::{check_transfer, check_update, refuse_if};
use super::tables::{File, IntentRow, Tables, move_counters, next_id};
use super::{TIMELINE, kept};
use crate::store::StoreError;
use crate::store::change::{Change, FenceGuard, NewAttempt, TransferKind, WriteResult};
use crate::store::read::{Break, InboxEntry, InboxReading, Payment, Transfer};
use chrono::{DateTime, Utc};
use jobs::ids::{AttemptId, IntentId, PaymentId, SessionId};
use jobs::refund::intent::{Attempt, Intent, RecordedOutcome};
use std::collections::{BTreeMap, BTreeSet};

/// What a batch is going to write.
#[derive(Default)]
struct Draft<'a> {
    winners: BTreeMap<&'a IntentId, (&'a Change, IntentRow)>,
    payments: BTreeMap<PaymentId, Payment>,
    attempts: BTreeSet<AttemptId>,
}

impl Tables {
    pub(super) fn apply(&mut self, changes: &[Change], now: DateTime<Utc>) -> Result<Vec<WriteResult>, StoreError> {
        let mut draft = Draft::default();
        let mut results = Vec::with_capacity(changes.len());
        for change in changes {
            refuse_if(
                draft.winners.contains_key(&change.intent_id),
                "refund_intents",
                "a batch holds one change of an intent",
            )?;
            let result = self.judge(change);
            if result == WriteResult::Written {
                self.draft_winner(&mut draft, change, now)?;
            }
            results.push(result);
        }
        self.payments.append(&mut draft.payments);
        for (change, row) in draft.winners.into_values() {
            self.write_winner(change, row, now);
        }
        Ok(results)
    }

    /// Stale before moved: whoever's token is stale must stop, whatever else changed.
    fn judge(&self, change: &Change) -> WriteResult {
        if change.token.epoch != self.current_epoch() {
            return WriteResult::StaleToken;
        }
        let Some(file) = self.intents.get(&change.intent_id) else { return WriteResult::StateMoved };
        let intent = &file.row.intent;
        if intent.fence > change.token {
            return WriteResult::StaleToken;
        }
        let fence_fits = match change.fence_guard {
            FenceGuard::Below => intent.fence < change.token,
            FenceGuard::Equal => intent.fence == change.token,
        };
        let as_read = fence_fits
            && intent.version == change.expected_version
            && intent.open_attempt == change.expected_open_attempt
            && inbox_is_unread(file, change);
        if as_read { WriteResult::Written } else { WriteResult::StateMoved }
    }

    fn draft_winner<'a>(
        &self,
        draft: &mut Draft<'a>,
        change: &'a Change,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let Some(file) = self.intents.get(&change.intent_id) else { return Ok(()) };
        let row = IntentRow {
            intent: changed(&file.row.intent, change, now),
            stamp: change.token,
            stamp_version: change.expected_version.saturating_add(1),
        };
        check_update(&file.row, &row)?;
        if let Some(attempt) = &change.attempt {
            let installed = row.intent.open_attempt == Some(attempt.attempt_id);
            refuse_if(!installed, "refund_attempts_fence", "the attempt is not the one its intent has open")?;
            let known = self.attempts.contains_key(&attempt.attempt_id) || !draft.attempts.insert(attempt.attempt_id);
            refuse_if(known, "refund_attempts_pkey", "the attempt exists")?;
        }
        for outcome in &change.outcomes {
            let installed_now = change.attempt.as_ref().is_some_and(|attempt| attempt.attempt_id == outcome.attempt_id);
            let ours = installed_now || file.attempts.iter().any(|attempt| attempt.attempt_id == outcome.attempt_id);
            refuse_if(!ours, "refund_outcomes_attempt", "the outcome is of no attempt of this intent")?;
        }
        if let Some(kind) = change.transfer {
            check_transfer(&row.intent, &file.transfers, kind.as_str())?;
        }
        self.draft_counters(draft, &file.row.intent, &row.intent)?;
        draft.winners.insert(&change.intent_id, (change, row));
        Ok(())
    }

    fn draft_counters(&self, draft: &mut Draft<'_>, old: &Intent, new: &Intent) -> Result<(), StoreError> {
        let stored = || self.payments.get(&old.payment_id);
        let Some(mut payment) = draft.payments.get(&old.payment_id).or_else(stored).cloned() else { return Ok(()) };
        move_counters(&mut payment, old.amount, old.state.counts_as(), new.state.counts_as())?;
        draft.payments.insert(old.payment_id.clone(), payment);
        Ok(())
    }

    fn write_winner(&mut self, change: &Change, row: IntentRow, now: DateTime<Utc>) {
        let Some(file) = self.intents.get_mut(&change.intent_id) else { return };
        file.row = row;
        if let (Some(new), Some(session)) = (&change.attempt, change.holder_session) {
            self.attempts.insert(new.attempt_id, change.intent_id.clone());
            file.attempts.push(installed(new, session, &file.row.intent));
        }
        record_outcomes(file, change, now);
        if let Some(kind) = change.transfer {
            let transfer_id = next_id(&mut self.last_transfer_id);
            file.transfers.push(transfer(kind, transfer_id, &file.row.intent, now));
        }
        for new in &change.breaks {
            let break_id = next_id(&mut self.last_break_id);
            let detail = new.detail.clone();
            file.breaks.push(Break { break_id, class: new.class.to_owned(), detail, created_at: now });
        }
        let version = file.row.intent.version;
        for read in &change.inbox_applied {
            for entry in file.inbox.iter_mut().filter(|entry| entry.row.inbox_id == read.inbox_id) {
                let refused_because = read.refused_because.clone();
                entry.applied = Some(InboxReading { refused_because, version, applied_at: now });
            }
        }
    }
}

fn inbox_is_unread(file: &File, change: &Change) -> bool {
    let wanted: BTreeSet<i64> = change.inbox_applied.iter().map(|read| read.inbox_id).collect();
    let unread = |entry: &&InboxEntry| entry.applied.is_none() && wanted.contains(&entry.row.inbox_id);
    file.inbox.iter().filter(unread).count() == change.inbox_applied.len()
}

fn changed(old: &Intent, change: &Change, now: DateTime<Utc>) -> Intent {
    Intent {
        state: change.state,
        state_reason: change.state_reason.clone(),
        psp_refund_ref: change.psp_refund_ref.clone(),
        version: change.expected_version.saturating_add(1),
        fence: change.token,
        holder_session: change.holder_session,
        open_attempt: change.open_attempt,
        next_action: change.next_action,
        next_action_at: change.next_action_at.map(kept),
        rung: change.rung,
        timeline: TIMELINE,
        updated_at: now,
        ..old.clone()
    }
}

fn installed(new: &NewAttempt, session: SessionId, intent: &Intent) -> Attempt {
    Attempt {
        attempt_id: new.attempt_id,
        intent_id: intent.intent_id.clone(),
        kind: new.kind,
        token: intent.fence,
        session,
        installed_version: intent.version,
        started_at: kept(new.started_at),
        deadline: kept(new.deadline),
        key_expires_at: new.key_expires_at.map(kept),
        absent_until: new.absent_until.map(kept),
        grounds: new.grounds.clone(),
        outcome: None,
    }
}

fn record_outcomes(file: &mut File, change: &Change, now: DateTime<Utc>) {
    for new in &change.outcomes {
        let attempt = file.attempts.iter_mut().find(|attempt| attempt.attempt_id == new.attempt_id);
        let Some(attempt) = attempt.filter(|attempt| attempt.outcome.is_none()) else { continue };
        attempt.outcome = Some(RecordedOutcome {
            outcome: new.outcome.clone(),
            duration_ms: new.duration_ms,
            late: new.late,
            recorded_at: now,
        });
    }
}

fn transfer(kind: TransferKind, transfer_id: i64, intent: &Intent, now: DateTime<Utc>) -> Transfer {
    let customer = format!("customer_refunds:{}", intent.amount.currency);
    let clearing = format!("psp_clearing:{}:{}", intent.psp, intent.amount.currency);
    let (debit_account, credit_account) = match kind {
        TransferKind::Post => (customer, clearing),
        TransferKind::Reverse => (clearing, customer),
    };
    Transfer {
        transfer_id,
        kind: kind.as_str().to_owned(),
        debit_account,
        credit_account,
        amount: intent.amount,
        token: intent.fence,
        created_at: now,
    }
}
