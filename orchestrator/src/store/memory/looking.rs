//! What people ask for: find, story, list, balances, backlog.

use super::paging::Cursor;
use super::tables::{File, Tables};
use crate::store::StoreError;
use crate::store::read::{AccountBalance, Backlog, IntentFilter, IntentPage, StateCount, Story};
use chrono::{DateTime, Utc};
use jobs::ids::IntentId;
use jobs::money::Currency;
use jobs::refund::intent::{Intent, MACHINE_VERSION, NextAction};
use jobs::refund::state::State;
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Tables {
    pub(super) fn find(&self, any_id: &str, limit: usize) -> Vec<IntentId> {
        let mut found: Vec<&Intent> = self
            .intents
            .values()
            .map(|file| &file.row.intent)
            .filter(|intent| self.is_known_as(intent, any_id))
            .collect();
        found.sort_by_key(|intent| Reverse((intent.created_at, &intent.intent_id)));
        found.into_iter().take(limit).map(|intent| intent.intent_id.clone()).collect()
    }

    fn is_known_as(&self, intent: &Intent, any_id: &str) -> bool {
        intent.intent_id.as_str() == any_id
            || intent.psp_refund_ref.as_deref() == Some(any_id)
            || intent.payment_id.as_str() == any_id
            || intent.psp_payment_ref == any_id
            || intent.merchant_reference.as_deref() == Some(any_id)
            || self
                .payments
                .get(&intent.payment_id)
                .is_some_and(|payment| payment.merchant_reference.as_deref() == Some(any_id))
    }

    pub(super) fn story(&self, id: &IntentId, now: DateTime<Utc>) -> Option<Story> {
        let file = self.intents.get(id)?;
        let intent = file.row.intent.clone();
        let payment = self.payments.get(&intent.payment_id)?.clone();
        let psp_pause = self.pauses.get(&intent.psp).cloned();
        let File { attempts, inbox, transfers, breaks, .. } = file.clone();
        Some(Story { now, intent, payment, attempts, inbox, transfers, breaks, psp_pause })
    }

    pub(super) fn list(
        &self,
        filter: &IntentFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<IntentPage, StoreError> {
        let after = cursor.map(Cursor::read).transpose()?;
        let mut matching: Vec<&Intent> = self
            .intents
            .values()
            .map(|file| &file.row.intent)
            .filter(|intent| passes(filter, intent))
            .filter(|intent| after.as_ref().is_none_or(|cursor| cursor.is_before(intent)))
            .collect();
        matching.sort_by_key(|intent| Reverse((intent.created_at, &intent.intent_id)));
        let more = matching.len() > limit;
        let intents: Vec<Intent> = matching.into_iter().take(limit).cloned().collect();
        let next_cursor = intents.last().filter(|_| more).map(|last| Cursor::at(last).to_string());
        Ok(IntentPage { intents, next_cursor })
    }

    pub(super) fn balances(&self) -> Vec<AccountBalance> {
        let mut sums: BTreeMap<(&str, Currency), (i64, i64)> = BTreeMap::new();
        for transfer in self.intents.values().flat_map(|file| &file.transfers) {
            let currency = transfer.amount.currency;
            let debit = sums.entry((&transfer.debit_account, currency)).or_default();
            debit.0 = debit.0.saturating_add(transfer.amount.minor);
            let credit = sums.entry((&transfer.credit_account, currency)).or_default();
            credit.1 = credit.1.saturating_add(transfer.amount.minor);
        }
        let balance = |((account, currency), (debit_minor, credit_minor)): ((&str, Currency), (i64, i64))| {
            AccountBalance { account: account.to_owned(), currency, debit_minor, credit_minor }
        };
        sums.into_iter().map(balance).collect()
    }

    pub(super) fn backlog(&self) -> Backlog {
        let mut counts: BTreeMap<(State, &str), Waiting> = BTreeMap::new();
        let mut backlog = Backlog::default();
        let mut oldest_silent: Option<(DateTime<Utc>, &IntentId)> = None;
        for intent in self.intents.values().map(|file| &file.row.intent) {
            counts.entry((intent.state, &intent.psp)).or_default().add(intent.created_at);
            if intent.machine_version != MACHINE_VERSION {
                backlog.unknown_machine_version = backlog.unknown_machine_version.saturating_add(1);
            }
            let resting = intent.state.is_final() || intent.state == State::NeedsReview;
            if !resting && intent.next_action == NextAction::None {
                let this = (intent.created_at, &intent.intent_id);
                oldest_silent = Some(oldest_silent.map_or(this, |oldest| oldest.min(this)));
            }
        }
        backlog.without_next_action = oldest_silent.map(|(_, id)| id.clone());
        backlog.states = counts
            .into_iter()
            .map(|((state, psp), Waiting { count, oldest_at })| StateCount {
                state,
                psp: psp.to_owned(),
                count,
                oldest_at,
            })
            .collect();
        backlog
    }
}

#[derive(Default)]
struct Waiting {
    count: i64,
    oldest_at: Option<DateTime<Utc>>,
}

impl Waiting {
    fn add(&mut self, created_at: DateTime<Utc>) {
        self.count = self.count.saturating_add(1);
        self.oldest_at = Some(self.oldest_at.map_or(created_at, |oldest| oldest.min(created_at)));
    }
}

fn passes(filter: &IntentFilter, intent: &Intent) -> bool {
    (filter.states.is_empty() || filter.states.contains(&intent.state))
        && filter.psp.as_ref().is_none_or(|psp| *psp == intent.psp)
        && filter.payment_id.as_ref().is_none_or(|id| *id == intent.payment_id)
        && filter
            .merchant_reference
            .as_ref()
            .is_none_or(|reference| intent.merchant_reference.as_ref() == Some(reference))
        && filter.created_from.is_none_or(|from| intent.created_at >= from)
        && filter.created_before.is_none_or(|before| intent.created_at < before)
}
