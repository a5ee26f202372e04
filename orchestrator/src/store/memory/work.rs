//! What workers ask for: what is due, and the rows to plan from.

use super::tables::{File, Tables};
use crate::store::DueQuery;
use chrono::{DateTime, Utc};
use jobs::ids::{IntentId, SessionId};
use jobs::refund::intent::{IntentFile, NextAction};
use std::collections::BTreeSet;

impl Tables {
    /// Intents without a next action, due for an unread message only, come last; equal times in the order of ids.
    pub(super) fn due(&self, query: &DueQuery, now: DateTime<Utc>) -> Vec<IntentId> {
        let live: Option<BTreeSet<SessionId>> = query.live_sessions.as_ref().map(|live| live.iter().copied().collect());
        let mut due: Vec<(bool, Option<DateTime<Utc>>, &IntentId)> = self
            .intents
            .iter()
            .filter(|(_, file)| is_due(file, query, live.as_ref(), now))
            .map(|(id, file)| (file.row.intent.next_action_at.is_none(), file.row.intent.next_action_at, id))
            .collect();
        due.sort_unstable();
        due.into_iter().take(query.limit).map(|(_, _, id)| id.clone()).collect()
    }

    pub(super) fn load(&self, ids: &[IntentId]) -> Vec<IntentFile> {
        ids.iter().filter_map(|id| self.intents.get(id)).map(to_plan_from).collect()
    }
}

fn is_due(file: &File, query: &DueQuery, live: Option<&BTreeSet<SessionId>>, now: DateTime<Utc>) -> bool {
    let intent = &file.row.intent;
    let ours = intent.psp == query.psp
        && intent.psp_account == query.psp_account
        && intent.machine_version == query.machine_version;
    if !ours {
        return false;
    }
    let allowed = match intent.next_action {
        NextAction::Create => query.creates_allowed,
        NextAction::Lookup => true,
        NextAction::None => false,
    };
    let planned = allowed && intent.next_action_at.is_some_and(|at| at <= now);
    let orphaned = intent.holder_session.zip(live).is_some_and(|(session, live)| !live.contains(&session));
    let told = intent.holder_session.is_none() && file.has_unread();
    planned || orphaned || told
}

fn to_plan_from(file: &File) -> IntentFile {
    IntentFile {
        intent: file.row.intent.clone(),
        attempts: file.attempts.clone(),
        unread: file.inbox.iter().filter(|entry| entry.applied.is_none()).map(|entry| entry.row.clone()).collect(),
    }
}
