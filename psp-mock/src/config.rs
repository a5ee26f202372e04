//! What a mock is started with, and how durations and rates are written on its command line.

use crate::faults::{Effect, Executes};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Everything that is fixed when a mock starts. Faults are added later, see [`crate::Fault`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Source of every id and every drawn fault.
    pub seed: u64,
    /// How long an answer takes when no fault says otherwise.
    pub latency: Duration,
    /// Which calls `latency` slows down.
    pub latency_on: LatencyOn,
    /// Whether a slow call executes when it arrives or just before its answer.
    pub latency_executes: Executes,
    /// How long an idempotency key is remembered, by the mock's clock.
    pub key_lifetime: Duration,
    /// The metadata key that carries the caller's reference; counters and fault matches go by it.
    pub reference_key: String,
    /// Where events are sent.
    pub webhook: Option<Webhook>,
    /// Waits before the second, third, ... delivery of an event that was not taken.
    pub webhook_retries: Vec<Duration>,
    /// Faults drawn by chance.
    pub fault_rates: Vec<FaultRate>,
    /// API key to account; a key not listed belongs to `default_account`.
    pub accounts: Vec<(String, String)>,
    pub default_account: String,
}

/// Which calls the configured latency slows down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyOn {
    /// Only those that create a refund.
    Creates,
    /// Every call under `/v1`.
    All,
}

/// The endpoint that receives events.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: String,
    pub secret: String,
}

/// A fault that hits each fitting call with a fixed chance.
#[derive(Clone, Debug)]
pub struct FaultRate {
    pub effect: Effect,
    /// Chance in millionths.
    pub per_million: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            seed: 1,
            latency: Duration::ZERO,
            latency_on: LatencyOn::Creates,
            latency_executes: Executes::First,
            key_lifetime: Duration::from_secs(24 * 60 * 60),
            reference_key: "intent_id".to_owned(),
            webhook: None,
            webhook_retries: [200, 1_000, 5_000].map(Duration::from_millis).to_vec(),
            fault_rates: Vec::new(),
            accounts: Vec::new(),
            default_account: "acct_mock".to_owned(),
        }
    }
}

/// Reads `250ms`, `45s`, `10m`, `24h`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 =
        text[..digits].parse().map_err(|_| format!("`{text}` is not a duration such as 250ms, 45s, 10m or 24h"))?;
    let unit_ms = match &text[digits..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        unit => return Err(format!("unknown unit `{unit}` in `{text}`: use ms, s, m or h")),
    };
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| format!("`{text}` is too long"))
}

/// Reads `kind=0.01` or, for kinds that take a time, `latency:45s=0.01`.
pub fn parse_fault_rate(text: &str) -> Result<FaultRate, String> {
    let (name, chance) =
        text.split_once('=').ok_or_else(|| format!("`{text}` is not kind=chance, such as answer_lost=0.01"))?;
    let (kind, time) = match name.split_once(':') {
        Some((kind, time)) => (kind, Some(parse_duration(time)?)),
        None => (name, None),
    };
    let effect =
        Effect::by_name(kind, time).ok_or_else(|| format!("no fault `{kind}`; known: {}", Effect::NAMES.join(", ")))?;
    Ok(FaultRate { effect, per_million: parse_chance(chance)? })
}

/// Reads a decimal between 0 and 1 into millionths, without floats.
fn parse_chance(text: &str) -> Result<u32, String> {
    let error = || format!("`{text}` is not a chance between 0 and 1 with at most six decimals");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return Err(error());
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| error())? };
    let millionths: u32 = format!("{part:0<6}").parse().map_err(|_| error())?;
    whole.checked_mul(1_000_000).and_then(|w| w.checked_add(millionths)).filter(|c| *c <= 1_000_000).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        for (text, ms) in
            [("250ms", 250), ("45s", 45_000), ("45", 45_000), ("10m", 600_000), ("24h", 86_400_000), ("0", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "4d", "-1s", "1.5s", "99999999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn chances_are_read_into_millionths() {
        for (text, expected) in [("0", 0), ("1", 1_000_000), ("0.01", 10_000), (".5", 500_000), ("0.000001", 1)] {
            assert_eq!(parse_chance(text), Ok(expected), "{text}");
        }
        for text in ["1.1", "2", "-0.1", "0.0000001", "x", "1e-3"] {
            assert!(parse_chance(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_named_fault_can_be_given_a_rate() {
        for name in Effect::NAMES {
            assert!(parse_fault_rate(&format!("{name}=0.5")).is_ok(), "{name}");
        }
        assert!(parse_fault_rate("nonsense=0.5").is_err());
    }
}
