//! All rows of a case in a form that two stores can be compared by, and writes made from them.

use super::command::{Step, Wrong};
use super::player::{NO_SOURCE, Player, future, past};
use crate::store_suite::fixture::{accepted, attempt_id, change_to, new_attempt, session};
use chrono::{DateTime, Utc};
use jobs::ids::AttemptId;
use jobs::refund::intent::{AttemptKind, Intent, NextAction};
use jobs::refund::state::State;
use orchestrator::store::change::{Change, FenceGuard, InboxApplied, NewBreak, NewOutcome, TransferKind};
use orchestrator::store::read::{IntentFilter, Story};

/// Instead of every time a database assigns.
const ASSIGNED: DateTime<Utc> = DateTime::UNIX_EPOCH;

pub(crate) fn plain_intent(player: &Player<'_>, intent: Intent) -> Intent {
    let fence = player.shared(intent.fence);
    Intent { fence, timeline: 0, created_at: ASSIGNED, updated_at: ASSIGNED, ..intent }
}

fn plain_story(player: &Player<'_>, story: Story) -> Story {
    let mut story = Story { now: ASSIGNED, intent: plain_intent(player, story.intent), ..story };
    story.payment.created_at = ASSIGNED;
    for attempt in &mut story.attempts {
        attempt.token = player.shared(attempt.token);
        if let Some(recorded) = &mut attempt.outcome {
            recorded.recorded_at = ASSIGNED;
        }
    }
    for (number, entry) in (0..).zip(&mut story.inbox) {
        (entry.row.inbox_id, entry.row.received_at) = (number, ASSIGNED);
        if let Some(reading) = &mut entry.applied {
            reading.applied_at = ASSIGNED;
        }
    }
    for (number, transfer) in (0..).zip(&mut story.transfers) {
        (transfer.transfer_id, transfer.created_at) = (number, ASSIGNED);
        transfer.token = player.shared(transfer.token);
    }
    for (number, found) in (0..).zip(&mut story.breaks) {
        (found.break_id, found.created_at) = (number, ASSIGNED);
    }
    if let Some(pause) = &mut story.psp_pause {
        pause.paused_at = ASSIGNED;
    }
    story
}

/// One line each: stories, payments, lists, balances, backlog, and what is due.
pub(crate) async fn all(player: &Player<'_>) -> Result<Vec<String>, String> {
    let failed = |error| format!("the store failed: {error}");
    let store = &player.store;
    let mut lines = Vec::new();
    for id in player.intents() {
        let story = player.story(&id).await?.map(|story| plain_story(player, story));
        lines.push(format!("{story:?}"));
    }
    let loaded = store.load(&player.intents()).await.map_err(failed)?;
    for file in loaded.files {
        let unread: Vec<String> = file.unread.iter().map(|row| row.source_id.clone()).collect();
        lines.push(format!("{} {} {unread:?}", file.intent.intent_id, file.attempts.len()));
    }
    for id in player.payments() {
        let payment = store.payment(&id).await.map_err(failed)?;
        lines.push(format!(
            "{:?}",
            payment.map(|payment| (payment.captured, payment.refunded_minor, payment.reserved_minor))
        ));
        let mut found = store.find(id.as_str(), 100).await.map_err(failed)?;
        found.sort();
        lines.push(format!("{found:?}"));
    }
    let filter = IntentFilter { psp: Some(player.psp()), ..IntentFilter::default() };
    let page = store.list(&filter, None, 100).await.map_err(failed)?;
    let mut listed: Vec<_> = page.intents.into_iter().map(|intent| plain_intent(player, intent)).collect();
    listed.sort_by(|a, b| a.intent_id.cmp(&b.intent_id));
    lines.push(format!("{listed:?} {:?}", page.next_cursor));
    let balances = store.balances().await.map_err(failed)?;
    let account = format!("psp_clearing:{}:EUR", player.psp());
    lines.push(format!("{:?}", balances.iter().find(|balance| balance.account == account)));
    let mut backlog = store.backlog().await.map_err(failed)?;
    // Stores may leave finals out.
    backlog.states.retain(|count| count.psp == player.psp() && !count.state.is_final());
    backlog.states.sort_by_key(|count| count.state);
    let counts: Vec<_> = backlog.states.iter().map(|count| (count.state, count.count)).collect();
    lines.push(format!("{counts:?} {:?}", backlog.without_next_action));
    for creates_allowed in [true, false] {
        for live in [vec![], vec![1, 2], vec![1, 2, 3, 4, 5, 6, 7, 8]] {
            let mut due = store.due(&player.due_query(creates_allowed, &live)).await.map_err(failed)?;
            due.sort();
            lines.push(format!("due {creates_allowed} {live:?} {due:?}"));
        }
    }
    Ok(lines)
}

/// The write a step means, from the story of its intent, in shared terms.
pub(crate) fn change(player: &Player<'_>, step: &Step, story: &Story, unique: &str) -> Change {
    let intent = &story.intent;
    let (token, first_step) = player.token(step, intent.fence);
    let mut change = change_to(intent, token, step.state, if step.due { past() } else { future() });
    change.fence_guard = if first_step { FenceGuard::Below } else { FenceGuard::Equal };
    if step.installs || step.state == State::Sending {
        let attempt = attempt_id(unique, 1);
        change.holder_session = Some(session(token.counter));
        change.open_attempt = Some(attempt);
        let mut new = new_attempt(attempt, future());
        if step.lookup {
            (new.kind, new.absent_until, new.grounds) = (AttemptKind::Lookup, None, Some("looked for".to_owned()));
        }
        change.attempt = Some(new);
    }
    let settled = step.settles.and_then(|back| story.attempts.iter().rev().nth(usize::from(back)));
    change.outcomes.extend(settled.map(|attempt| outcome(attempt.attempt_id, intent, token.counter)));
    let posted = |kind: &str| story.transfers.iter().any(|transfer| transfer.kind == kind);
    change.transfer = match step.state {
        State::Succeeded if !posted("post") => Some(TransferKind::Post),
        State::Reversed if posted("post") && !posted("reverse") => Some(TransferKind::Reverse),
        _ => None,
    };
    let found = |number| NewBreak { class: "second_refund", detail: format!("{unique}-{number}") };
    change.breaks = (0..step.breaks).map(found).collect();
    if step.reads {
        change.inbox_applied = messages(player, story, false, token.counter);
    }
    spoil(player, &mut change, step.wrong, story);
    change
}

fn outcome(attempt_id: AttemptId, intent: &Intent, counter: i64) -> NewOutcome {
    NewOutcome { attempt_id, outcome: accepted(intent), duration_ms: counter, late: counter % 2 == 0 }
}

/// Numbers of the sources of the intent's messages, read or unread.
fn messages(player: &Player<'_>, story: &Story, read: bool, counter: i64) -> Vec<InboxApplied> {
    let number = |source: &str| (0..NO_SOURCE).find(|number| player.source(*number) == source);
    story
        .inbox
        .iter()
        .filter(|entry| entry.applied.is_some() == read)
        .filter_map(|entry| number(&entry.row.source_id))
        .map(|inbox_id| InboxApplied { inbox_id, refused_because: (counter % 2 == 0).then(|| "too late".to_owned()) })
        .collect()
}

/// Puts one thing wrong, where there is something to put wrong.
fn spoil(player: &Player<'_>, change: &mut Change, wrong: Wrong, story: &Story) {
    let other = attempt_id("nobody's", 1);
    match wrong {
        Wrong::Nothing => {}
        Wrong::VersionBefore => change.expected_version -= 1,
        Wrong::VersionAfter => change.expected_version += 1,
        Wrong::OpenForgotten => change.expected_open_attempt = None,
        Wrong::OpenAnother => change.expected_open_attempt = Some(other),
        Wrong::NoNextAction => (change.next_action, change.next_action_at) = (NextAction::None, None),
        Wrong::NoReason => change.state_reason = None,
        Wrong::HolderWithoutAttempt => {
            (change.holder_session, change.open_attempt, change.attempt) = (Some(session(1)), None, None);
        }
        Wrong::OutcomeOfNoAttempt => change.outcomes.push(outcome(other, &story.intent, 1)),
        Wrong::TransferTwice => change.transfer = Some(TransferKind::Post),
        Wrong::AttemptUsed => {
            if let (Some(new), Some(used)) = (&mut change.attempt, story.attempts.first()) {
                new.attempt_id = used.attempt_id;
                change.open_attempt = Some(used.attempt_id);
            }
        }
        Wrong::AttemptNotOpen => {
            if change.attempt.is_some() {
                change.open_attempt = Some(other);
            }
        }
        Wrong::MessageRead => change.inbox_applied.extend(messages(player, story, true, 1).into_iter().take(1)),
        Wrong::MessageUnknown => {
            change.inbox_applied.push(InboxApplied { inbox_id: NO_SOURCE, refused_because: None });
        }
        Wrong::RungNegative => change.rung = -1,
    }
}
