//! Payment service providers: where they are, and what they promise.

use super::check::Checker;
use chrono::TimeDelta;
use jobs::money::Currency;
use jobs::refund::capabilities::{Capabilities, WireAmount};
use secrecy::SecretString;
use serde::Deserialize;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// Names are metric labels and parts of account names.
const NAME_LENGTH_MAX: usize = 32;
const LADDER_LENGTH_MAX: usize = 100;
/// How much longer than its call a step may take.
const HOLD_MARGIN: TimeDelta = TimeDelta::seconds(15);

/// Which adapter speaks to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PspKind {
    Stripe,
}

impl PspKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
        }
    }
}

/// One provider and one account at it.
#[derive(Debug, Clone)]
pub struct Psp {
    pub name: String,
    pub account: String,
    pub kind: PspKind,
    /// Without a slash at its end.
    pub base_url: String,
    pub api_key: SecretString,
    pub capabilities: Capabilities,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PspFile {
    name: String,
    account: String,
    kind: PspKind,
    base_url: String,
    api_key: Option<SecretString>,
    api_key_env: Option<String>,
    timeout: Option<String>,
    concurrency: Option<usize>,
    creates_per_second: Option<u32>,
    absence_window: Option<String>,
    key_lifetime: Option<String>,
    unknown_ladder: Option<Vec<String>>,
    processing_ladder: Option<Vec<String>>,
    #[serde(default)]
    wire_amounts: Vec<WireAmountFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireAmountFile {
    currency: String,
    exponent: u32,
    #[serde(default = "one")]
    multiple_of: i64,
}

const fn one() -> i64 {
    1
}

pub(super) fn check_all(files: Vec<PspFile>, checker: &mut Checker<'_>) -> Vec<Psp> {
    checker.require(!files.is_empty(), "psp", || "missing: write at least one [[psp]] table".to_owned());
    let mut psps: Vec<Psp> = Vec::new();
    for file in files {
        let repeated = psps.iter().any(|psp| psp.name == file.name);
        let key = format!("psp.{}", file.name);
        checker.require(!repeated, &key, || "named twice: names are unique, give one another name".to_owned());
        psps.extend(file.check(&key, checker));
    }
    psps
}

impl PspFile {
    fn check(self, key: &str, checker: &mut Checker<'_>) -> Option<Psp> {
        let at = |name: &str| format!("{key}.{name}");
        checker.identifier(&at("name"), &self.name, NAME_LENGTH_MAX);
        checker.identifier(&at("account"), &self.account, jobs::ids::IDENTIFIER_LENGTH_MAX);
        let base_url = self.base_url.trim_end_matches('/').to_owned();
        if let Err(problem) = check_base_url(&base_url) {
            checker.problem(&at("base_url"), problem);
        }
        let capabilities = self.capabilities(key, checker);
        let api_key = checker.secret(&at("api_key"), self.api_key, self.api_key_env.as_deref());
        Some(Psp { name: self.name, account: self.account, kind: self.kind, base_url, api_key: api_key?, capabilities })
    }

    fn capabilities(&self, key: &str, checker: &mut Checker<'_>) -> Capabilities {
        let at = |name: &str| format!("{key}.{name}");
        let mut promised = match self.kind {
            PspKind::Stripe => Capabilities::stripe(),
        };
        let mut duration = |name: &str, text: Option<&str>, default: TimeDelta, least: Duration, most: Duration| {
            let default = default.to_std().unwrap_or(least);
            delta(checker.duration(&at(name), text, default, (least, most)))
        };
        let text = self.timeout.as_deref();
        promised.timeout = duration("timeout", text, promised.timeout, SECOND, HOUR / 6);
        promised.hold_max = promised.timeout + HOLD_MARGIN;
        let text = self.absence_window.as_deref();
        promised.absence_window = duration("absence_window", text, promised.absence_window, SECOND, DAY);
        promised.key_lifetime = match (self.key_lifetime.as_deref(), promised.key_lifetime) {
            (Some("none"), _) | (None, None) => None,
            (text, default) => {
                let default = default.unwrap_or_else(|| TimeDelta::hours(24));
                Some(duration("key_lifetime", text, default, 2 * HOUR, 365 * DAY))
            }
        };
        promised.concurrency = checker.count(&at("concurrency"), self.concurrency, promised.concurrency, (1, 10_000));
        promised.creates_per_second = self.creates_per_second.unwrap_or(promised.creates_per_second);
        let ladder = self.unknown_ladder.as_deref();
        promised.unknown_ladder = check_ladder(&at("unknown_ladder"), ladder, promised.unknown_ladder, checker);
        let ladder = self.processing_ladder.as_deref();
        promised.processing_ladder =
            check_ladder(&at("processing_ladder"), ladder, promised.processing_ladder, checker);
        let wire_amounts = self.wire_amounts.iter().filter_map(|wire| wire.check(&at("wire_amounts"), checker));
        for wire in wire_amounts.collect::<Vec<_>>() {
            promised.wire_amounts.retain(|known| known.currency != wire.currency);
            promised.wire_amounts.push(wire);
        }
        promised
    }
}

impl WireAmountFile {
    fn check(&self, key: &str, checker: &mut Checker<'_>) -> Option<WireAmount> {
        let currency: Option<Currency> = self
            .currency
            .parse()
            .map_err(|error: jobs::money::CurrencyError| checker.problem(key, error.to_string()))
            .ok();
        checker.require(self.exponent <= 4, key, || format!("exponent {} is more than 4 places", self.exponent));
        checker.require(self.multiple_of >= 1, key, || "multiple_of is less than 1".to_owned());
        Some(WireAmount { currency: currency?, exponent: self.exponent, multiple_of: self.multiple_of })
    }
}

fn check_ladder(
    key: &str,
    texts: Option<&[String]>,
    default: Vec<TimeDelta>,
    checker: &mut Checker<'_>,
) -> Vec<TimeDelta> {
    let Some(texts) = texts else { return default };
    checker.require(!texts.is_empty() && texts.len() <= LADDER_LENGTH_MAX, key, || {
        format!("has {} rungs: write 1 to {LADDER_LENGTH_MAX}, such as [\"0s\", \"5s\", \"30s\"]", texts.len())
    });
    let rung = |text: &String| delta(checker.duration(key, Some(text), Duration::ZERO, (Duration::ZERO, 31 * DAY)));
    texts.iter().map(rung).collect()
}

/// Plain HTTP would send the API key in clear, so it is for this host only.
fn check_base_url(text: &str) -> Result<(), String> {
    let url: axum::http::Uri =
        text.parse().map_err(|_| format!("{text:?} is not an address such as https://api.stripe.com"))?;
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match url.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_local => Ok(()),
        Some("http") => Err(format!("{text} would send the API key in clear: use https")),
        _ => Err(format!("{text:?} is not an address such as https://api.stripe.com")),
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
