//! What a provider promises, as data. Rules read it; adapters and configuration fill it.

use crate::money::Currency;
use chrono::TimeDelta;

/// How a refund of ours can be found at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupMode {
    /// Among the refunds of the payment, by our reference.
    ByOurReference,
    /// Only by the provider's refund id, so not after a lost answer.
    ByIdOnly,
    None,
}

/// An exponent or step on the wire that differs from ISO 4217.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireAmount {
    pub currency: Currency,
    /// Decimal places on the wire.
    pub exponent: u32,
    /// The wire amount must be a multiple of this.
    pub multiple_of: i64,
}

/// The record of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// How long the provider honours an idempotency key; `None`: it has none, so nothing is ever resent.
    pub key_lifetime: Option<TimeDelta>,
    pub lookup: LookupMode,
    /// How long after a create's deadline a complete reading may still miss it.
    pub absence_window: TimeDelta,
    /// Longest a call may take.
    pub timeout: TimeDelta,
    /// Longest a hold's step may take: the timeout and a margin.
    pub hold_max: TimeDelta,
    pub wire_amounts: Vec<WireAmount>,
    pub unknown_ladder: Vec<TimeDelta>,
    pub processing_ladder: Vec<TimeDelta>,
    /// Calls open at once, and started per second (0: not limited).
    pub concurrency: usize,
    pub creates_per_second: u32,
}

const SECOND: i64 = 1;
const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

/// Seconds between lookups of an unknown refund; after the last one it is parked.
const UNKNOWN_LADDER_S: [i64; 12] =
    [0, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, DAY, DAY, DAY, DAY];

/// Bank refunds take days: thirty daily looks.
const PROCESSING_LADDER_S: [i64; 30] = [DAY; 30];

/// Seconds between tries of a create that the provider did not start on; the last one repeats, it never parks.
pub const NOT_EXECUTED_LADDER_S: [i64; 5] = [1, 5, 30, 120, 600];

/// Where Stripe's amounts differ from ISO 4217, by its page on currencies: ariary without decimals, two currencies kept at two
/// decimals that are always 00, and three-decimal currencies whose last digit must be 0. (Its rules for HUF and TWD are for payouts.)
const STRIPE_WIRE_AMOUNTS: [WireAmount; 8] = [
    wire_amount("MGA", 0, 1),
    wire_amount("ISK", 2, 100),
    wire_amount("UGX", 2, 100),
    wire_amount("BHD", 3, 10),
    wire_amount("JOD", 3, 10),
    wire_amount("KWD", 3, 10),
    wire_amount("OMR", 3, 10),
    wire_amount("TND", 3, 10),
];

/// A row of a constant table: an unknown code stops the build.
const fn wire_amount(code: &str, exponent: u32, multiple_of: i64) -> WireAmount {
    match Currency::known(code) {
        Some(currency) => WireAmount { currency, exponent, multiple_of },
        None => panic!("not in the ISO 4217 table"),
    }
}

impl Capabilities {
    /// Stripe's documented promises: keys may be pruned once they are 24 hours old, refunds are listed by payment.
    #[must_use]
    pub fn stripe() -> Self {
        Self {
            key_lifetime: Some(TimeDelta::hours(24)),
            lookup: LookupMode::ByOurReference,
            absence_window: TimeDelta::minutes(5),
            timeout: TimeDelta::seconds(60),
            hold_max: TimeDelta::seconds(75),
            wire_amounts: STRIPE_WIRE_AMOUNTS.to_vec(),
            unknown_ladder: UNKNOWN_LADDER_S.map(TimeDelta::seconds).to_vec(),
            processing_ladder: PROCESSING_LADDER_S.map(TimeDelta::seconds).to_vec(),
            concurrency: 64,
            creates_per_second: 90,
        }
    }
}
