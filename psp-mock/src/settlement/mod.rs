//! The settlement report: Stripe's itemised payout reconciliation, written from the mock's own book.
//!
//! Lines are taken from the balance transactions, scripted gaps are applied to the lines of refunds, and the rest is written as CSV.
//! Reading a report changes nothing: the same range gives the same report, gaps included. A line belongs to the range in which it is
//! reported, which is when its money moved unless a gap delays it.

mod gaps;
mod lines;

use crate::server::Shared;
use chrono::{DateTime, NaiveDate, NaiveTime};
use serde::Deserialize;

/// Transactions read under one lock: calls wait no longer than this takes.
const READ_AT_ONCE: usize = 5_000;

/// Range and account of a report. Times are Unix seconds, dates (`2026-01-31`, midnight UTC) or RFC 3339.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReportQuery {
    /// First moment in the report; from the beginning when absent.
    pub from: Option<String>,
    /// First moment after it; up to now when absent.
    pub to: Option<String>,
    /// The default account when absent.
    #[serde(alias = "psp")]
    pub account: Option<String>,
}

pub(crate) fn report(shared: &Shared, query: &ReportQuery) -> Result<String, String> {
    let from_s = query.from.as_deref().map(parse_time).transpose()?.unwrap_or(i64::MIN);
    let to_s = query.to.as_deref().map(parse_time).transpose()?.unwrap_or(i64::MAX);
    let default_account = shared.default_account();
    let account = query.account.as_deref().unwrap_or(&default_account);
    let mut gaps = gaps::Gaps::new(shared.lock().faults.gaps());
    let mut kept = Vec::new();
    let mut next = 0;
    loop {
        let (state, now_ms) = shared.now();
        let end = state.transactions.len().min(next + READ_AT_ONCE);
        for transaction in state.transactions.range(next, end) {
            if state.account_of(transaction) == account {
                let line = lines::Line::new(&state, transaction);
                let within = |at_s: i64| (from_s..to_s).contains(&at_s) && at_s <= now_ms / 1000;
                kept.extend(gaps.apply(line).into_iter().filter(|line| within(line.reported_s)));
            }
        }
        if end == state.transactions.len() {
            break;
        }
        next = end;
    }
    kept.sort_by_key(|line| line.reported_s);
    lines::write(&kept, &shared.config.reference_key).map_err(|error| error.to_string())
}

fn parse_time(text: &str) -> Result<i64, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Ok(date.and_time(NaiveTime::MIN).and_utc().timestamp());
    }
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.timestamp())
        .map_err(|_| format!("`{text}` is neither Unix seconds nor a date nor an RFC 3339 time"))
}
