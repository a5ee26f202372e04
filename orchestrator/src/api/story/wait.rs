//! Why a refund waits, and what happens next.

use super::outcome_in_words;
use crate::store::read::Story;
use chrono::{DateTime, TimeDelta, Utc};
use jobs::refund::capabilities::Capabilities;
use jobs::refund::intent::{Attempt, AttemptKind, MACHINE_VERSION, NextAction};
use jobs::refund::outcome::Outcome;
use jobs::refund::state::State;

/// The two closing sentences.
pub(super) struct Wait {
    pub(super) left_alone: Option<&'static str>,
    pub(super) why: String,
    pub(super) next: String,
}

pub(super) fn wait(story: &Story, capabilities: Option<&Capabilities>) -> Wait {
    let intent = &story.intent;
    if let Some(wait) = settled(story) {
        return wait;
    }
    if intent.machine_version != MACHINE_VERSION {
        return Wait {
            left_alone: Some("machine_version"),
            why: format!(
                "Its row was written for version {} of the refund machine and this server runs version {MACHINE_VERSION}, so no worker of this version touches it.",
                intent.machine_version
            ),
            next: "Nothing here; a server that runs that version takes it up. Finish the rollout, or roll back."
                .to_owned(),
        };
    }
    let Some(capabilities) = capabilities else {
        return Wait {
            left_alone: Some("psp_not_configured"),
            why: format!(
                "PSP {} with account {} is not configured on this server, so it makes no call for it.",
                intent.psp, intent.psp_account
            ),
            next: format!(
                "Nothing here until a [[psp]] table with name {:?} and account {:?} is in the configuration and the server is restarted.",
                intent.psp, intent.psp_account
            ),
        };
    };
    if let Some(pause) = story.psp_pause.as_ref().filter(|_| intent.next_action == NextAction::Create) {
        return Wait {
            left_alone: Some("psp_paused"),
            why: format!(
                "Creates of PSP {} are paused since {} by {}: {}.",
                pause.psp,
                at(pause.paused_at),
                pause.actor,
                bare(&pause.reason)
            ),
            next: format!(
                "Its create is sent once someone runs `orchestrator psp resume {} --reason WHY`; lookups go on meanwhile.",
                pause.psp
            ),
        };
    }
    let (why, next) = match intent.state {
        State::Recorded => recorded(story),
        State::Sending => sending(story),
        State::Unknown => unknown(story, capabilities),
        State::Processing => processing(story, capabilities),
        _ => (String::new(), String::new()),
    };
    Wait { left_alone: None, why, next: format!("{next}{}", unread(story)) }
}

/// Final and parked refunds: nothing is planned.
fn settled(story: &Story) -> Option<Wait> {
    let intent = &story.intent;
    let id = &intent.intent_id;
    let reason = intent.state_reason.as_deref().map(bare);
    let (why, next) = match intent.state {
        State::Succeeded => (
            "It does not wait: the PSP says it is done, and it is posted.".to_owned(),
            "Nothing. Should the PSP take it back, it is reversed and the amount can be refunded again.".to_owned(),
        ),
        State::Failed => (
            format!("It does not wait: the PSP refused it for good ({}).", reason.unwrap_or("no reason given")),
            "Nothing. The amount can be refunded again, under a new intent_id.".to_owned(),
        ),
        State::Canceled => (
            format!("It does not wait: it was called off ({}).", reason.unwrap_or("no reason given")),
            "Nothing. The amount can be refunded again, under a new intent_id.".to_owned(),
        ),
        State::Reversed => (
            format!(
                "It does not wait: it had succeeded and the PSP took it back ({}).",
                reason.unwrap_or("no reason given")
            ),
            "Nothing. The contra transfer is posted and the amount can be refunded again, under a new intent_id."
                .to_owned(),
        ),
        State::NeedsReview => (
            format!("It is parked for a person: {}.", reason.unwrap_or("no reason on record")),
            format!(
                "Nothing by itself. Look at the PSP, then have it looked up again with `orchestrator refund replay {id} --reason WHY`; proof from the PSP moves it.{}",
                unread(story)
            ),
        ),
        State::Recorded | State::Sending | State::Unknown | State::Processing => return None,
    };
    Some(Wait { left_alone: None, why, next })
}

fn recorded(story: &Story) -> (String, String) {
    let why = match last_outcome(story) {
        Some((_, outcome @ Outcome::NotExecuted { .. })) => {
            format!("The PSP did not start on it ({}), so nothing has happened yet.", bare(&outcome_in_words(outcome)))
        }
        Some((attempt, outcome)) => format!(
            "No create of it can have executed; the last {} said {} ({}).",
            attempt.kind.as_str(),
            outcome.as_str(),
            bare(&outcome_in_words(outcome))
        ),
        None if story.attempts.is_empty() => "It is on record and its first call has not been started.".to_owned(),
        None => "Its call is open.".to_owned(),
    };
    let next = match (story.intent.open_attempt, story.intent.next_action) {
        (Some(_), _) => open_call(story),
        (None, NextAction::Lookup) => format!("It is looked up at the PSP before anything is sent, {}.", due(story)),
        (None, _) => format!("The create is sent {}.", due(story)),
    };
    (why, next)
}

fn sending(story: &Story) -> (String, String) {
    let open = story.attempts.iter().find(|attempt| Some(attempt.attempt_id) == story.intent.open_attempt);
    let why = open.map_or_else(
        || "A create is open and its outcome is not on record.".to_owned(),
        |attempt| format!("A create is open since {} and the PSP has not answered yet.", at(attempt.started_at)),
    );
    (why, open_call(story))
}

/// What ends an open call.
fn open_call(story: &Story) -> String {
    let open = story.attempts.iter().find(|attempt| Some(attempt.attempt_id) == story.intent.open_attempt);
    let deadline = open.map_or_else(|| due(story), |attempt| when(attempt.deadline, story.now));
    format!(
        "An answer is recorded as it comes. The call is given up {deadline} and looked up then; should its holder die, another looks it up."
    )
}

fn unknown(story: &Story, capabilities: &Capabilities) -> (String, String) {
    let told = last_outcome(story).map(|(attempt, outcome)| {
        let text = outcome_in_words(outcome);
        format!("; the last {} told {}: {}", attempt.kind.as_str(), outcome.as_str(), bare(&text))
    });
    let told = told.unwrap_or_else(|| "; its holder ended before an answer was recorded".to_owned());
    let why = format!("A create may have executed, and only proof ends that{told}.");
    if story.intent.open_attempt.is_some() {
        return (why, format!("A lookup is open. {}", open_call(story)));
    }
    let next = match story.intent.next_action {
        NextAction::Create => {
            format!("It was proved absent: the same create is sent again under the same key {}.", due(story))
        }
        _ => format!(
            "It is looked up at the PSP {}{}. {}",
            due(story),
            rung(story, capabilities.unknown_ladder.len()),
            resend(story)
        ),
    };
    (why, next)
}

/// Whether the same create may still be sent again.
fn resend(story: &Story) -> String {
    let expires = story
        .attempts
        .iter()
        .rev()
        .filter(|attempt| attempt.kind == AttemptKind::Create)
        .find_map(|attempt| attempt.key_expires_at);
    match expires {
        Some(expires) if expires > story.now && story.psp_pause.is_some() => format!(
            "If that proves it absent, the same create is sent again once creates of PSP {psp} are resumed (`orchestrator psp resume {psp} --reason WHY`), not after its key expires {}.",
            when(expires, story.now),
            psp = story.intent.psp,
        ),
        Some(expires) if expires > story.now => {
            format!(
                "If that proves it absent, the same create is sent again, long before its key expires {}.",
                when(expires, story.now)
            )
        }
        Some(expires) => {
            format!("Its key expired at {}, so it is not sent again; without proof it is parked.", at(expires))
        }
        None => "It has no key that the PSP honours, so it is not sent again; without proof it is parked.".to_owned(),
    }
}

fn processing(story: &Story, capabilities: &Capabilities) -> (String, String) {
    let intent = &story.intent;
    let reason = intent.state_reason.as_deref().map(|reason| format!(": {}", bare(reason))).unwrap_or_default();
    let named = intent.psp_refund_ref.as_deref().unwrap_or("no id on record");
    let why = format!("The PSP has taken it ({named}) and decides later{reason}.");
    if intent.open_attempt.is_some() {
        return (why, format!("A lookup is open. {}", open_call(story)));
    }
    (why, format!("It is looked up at the PSP {}{}.", due(story), rung(story, capabilities.processing_ladder.len())))
}

fn rung(story: &Story, length: usize) -> String {
    match usize::try_from(story.intent.rung) {
        Ok(rung) if (1..=length).contains(&rung) => format!(" (look {rung} of {length})"),
        _ => String::new(),
    }
}

fn unread(story: &Story) -> String {
    match story.inbox.iter().filter(|entry| entry.applied.is_none()).count() {
        0 => String::new(),
        1 => " One message in its inbox is not read yet: the next holder reads it first.".to_owned(),
        count => format!(" {count} messages in its inbox are not read yet: the next holder reads them first."),
    }
}

fn last_outcome(story: &Story) -> Option<(&Attempt, &Outcome)> {
    story
        .attempts
        .iter()
        .rev()
        .find_map(|attempt| attempt.outcome.as_ref().map(|recorded| (attempt, &recorded.outcome)))
}

fn due(story: &Story) -> String {
    story.intent.next_action_at.map_or_else(|| "at a time not on record".to_owned(), |time| when(time, story.now))
}

/// A sentence's own full stop follows.
fn bare(text: &str) -> &str {
    text.trim_end_matches(['.', ' '])
}

fn at(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Absolute, and relative to the database's clock.
fn when(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let away = time - now;
    if away.abs() < TimeDelta::seconds(1) {
        return format!("now (at {})", at(time));
    }
    if away < TimeDelta::zero() {
        return format!("now (due since {}, {} ago)", at(time), span(-away));
    }
    format!("at {} (in {})", at(time), span(away))
}

/// The two largest units.
fn span(span: TimeDelta) -> String {
    let seconds = span.num_seconds();
    let parts = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let shown: Vec<String> = parts
        .into_iter()
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if shown.is_empty() { "0 s".to_owned() } else { shown.join(" ") }
}
