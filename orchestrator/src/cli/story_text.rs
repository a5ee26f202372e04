//! One refund's story as text: what it is, what happened in the order it happened, why it waits and what happens next.

use crate::api::story::{AttemptView, InboxView, StoryView, TransferView};
use chrono::{DateTime, Utc};
use std::fmt::Write;

/// Renders the whole story.
#[must_use]
pub fn story_text(story: &StoryView) -> String {
    let mut text = String::new();
    write_to(&mut text, story).unwrap_or_default();
    text
}

fn write_to(text: &mut String, story: &StoryView) -> std::fmt::Result {
    let (refund, payment) = (&story.refund, &story.payment);
    let currency = refund.currency;
    let shown = if refund.state == refund.status { String::new() } else { format!(", shown as {}", refund.status) };
    writeln!(text, "Refund {} is {}{shown}", refund.intent_id, refund.state)?;
    writeln!(text, "  amount     {} {currency}", refund.amount)?;
    writeln!(
        text,
        "  payment    {}: captured {} {currency}, refunded {}, reserved {}, refundable now {}",
        payment.payment_id, payment.captured, payment.refunded, payment.reserved, payment.refundable
    )?;
    let named = refund.psp_refund_ref.as_ref().map(|id| format!(", refund {id}")).unwrap_or_default();
    writeln!(
        text,
        "  PSP        {}, account {}, payment {}{named}",
        refund.psp, refund.psp_account, refund.psp_payment_ref
    )?;
    writeln!(text, "  key        {}", story.idempotency_key)?;
    for (name, value) in
        [("reference", &refund.merchant_reference), ("reason", &refund.reason), ("because", &refund.state_reason)]
    {
        if let Some(value) = value {
            writeln!(text, "  {name:<10} {value}")?;
        }
    }
    writeln!(text, "\nWhat happened, by the database's clock (UTC):")?;
    for (time, line) in timeline(story) {
        writeln!(text, "  {}  {line}", time.format("%Y-%m-%d %H:%M:%S%.3f"))?;
    }
    writeln!(text, "\nWhy it waits: {}", story.why_it_waits)?;
    writeln!(text, "What happens next: {}", story.what_happens_next)
}

/// Everything on record, by time; what was written at the same time keeps the order in which it depends on each other.
fn timeline(story: &StoryView) -> Vec<(DateTime<Utc>, String)> {
    let refund = &story.refund;
    let mut lines =
        vec![(refund.created_at, format!("placeholder recorded, {} {} reserved", refund.amount, refund.currency))];
    for entry in &story.inbox {
        lines.push((entry.received_at, format!("message: {} {}", entry.kind.replace('_', " "), entry.detail)));
    }
    for attempt in &story.attempts {
        lines.push((attempt.started_at, started(attempt)));
        if let Some(outcome) = &attempt.outcome {
            let late = if outcome.late { ", late: its caller could no longer write the state" } else { "" };
            let name = outcome.outcome.replace('_', " ");
            let line = format!(
                "{} told {name} after {}{late}: {}",
                attempt.kind,
                seconds(outcome.duration_ms),
                outcome.detail
            );
            lines.push((outcome.recorded_at, line));
        }
    }
    for entry in &story.inbox {
        lines.extend(entry.read_at.map(|time| (time, read(entry))));
    }
    for transfer in &story.transfers {
        lines.push((transfer.created_at, posted(transfer)));
    }
    for found in &story.breaks {
        lines.push((found.created_at, format!("break {}: {}", found.class, found.detail)));
    }
    if let Some(pause) = &story.psp_pause {
        lines.push((
            pause.paused_at,
            format!("creates of PSP {} paused by {}: {}", refund.psp, pause.actor, pause.reason),
        ));
    }
    lines.sort_by_key(|(time, _)| *time);
    lines
}

fn started(attempt: &AttemptView) -> String {
    let mut line = format!(
        "{} started, may take until {}, token {}, session {}",
        attempt.kind,
        attempt.deadline.format("%H:%M:%S"),
        attempt.token,
        attempt.session.get(..8).unwrap_or(&attempt.session)
    );
    if let Some(grounds) = &attempt.grounds {
        line.push_str(&format!(", sent again because {grounds}"));
    }
    line
}

fn read(entry: &InboxView) -> String {
    let kind = entry.kind.replace('_', " ");
    match &entry.refused_because {
        Some(because) => format!("{kind} refused: {because}"),
        None => format!("{kind} applied"),
    }
}

fn posted(transfer: &TransferView) -> String {
    format!(
        "{} {} {}: debit {}, credit {}, token {}",
        transfer.kind,
        transfer.amount,
        transfer.currency,
        transfer.debit_account,
        transfer.credit_account,
        transfer.token
    )
}

fn seconds(duration_ms: i64) -> String {
    if duration_ms < 1_000 {
        format!("{duration_ms} ms")
    } else {
        format!("{}.{} s", duration_ms / 1_000, duration_ms % 1_000 / 100)
    }
}
