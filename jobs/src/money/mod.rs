//! Money as integer minor units with a currency. Floats never touch it.
//!
//! Minor units are ISO 4217's everywhere inside; a provider that counts otherwise is translated at the wire ([`to_wire`],
//! [`from_wire`]). Arithmetic is checked: a sum that does not fit, or that mixes currencies, is a typed error and never wraps.
//! Text is read exactly or not at all ([`Money::parse_decimal`]). Left out: exchange rates; nothing here converts.

mod currency;
mod decimal;
mod iso4217;
mod share;
mod wire;

pub use currency::{Currency, CurrencyError};
pub use decimal::ParseError;
pub use share::{Percent, PercentError, ShareError};
pub use wire::{WireError, from_wire, to_wire};

use serde::{Deserialize, Serialize};

/// An amount in minor units of its currency. Signed, so that sums and differences have a type; refunds are checked positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Money {
    pub minor: i64,
    pub currency: Currency,
}

/// Why two amounts have no sum or difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    #[error("amounts of {left} and {right} do not add up: convert one of them first")]
    CurrencyMismatch { left: Currency, right: Currency },
    #[error("the result is beyond the largest amount of {currency}, {} minor units", i64::MAX)]
    TooLarge { currency: Currency },
}

impl Money {
    #[must_use]
    pub const fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    #[must_use]
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.minor > 0
    }

    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_add)
    }

    pub fn checked_sub(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_sub)
    }

    pub fn checked_neg(self) -> Result<Self, MoneyError> {
        self.keep(self.minor.checked_neg())
    }

    /// The sum of amounts that must all be of `currency`; of none it is zero.
    pub fn checked_sum(currency: Currency, amounts: impl IntoIterator<Item = Self>) -> Result<Self, MoneyError> {
        amounts.into_iter().try_fold(Self::zero(currency), Self::checked_add)
    }

    fn combine(self, other: Self, operation: fn(i64, i64) -> Option<i64>) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::CurrencyMismatch { left: self.currency, right: other.currency });
        }
        self.keep(operation(self.minor, other.minor))
    }

    fn keep(self, minor: Option<i64>) -> Result<Self, MoneyError> {
        minor.map(|minor| Self { minor, ..self }).ok_or(MoneyError::TooLarge { currency: self.currency })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn money(minor: i64, code: &str) -> Money {
        Money::new(minor, code.parse().unwrap())
    }

    #[test]
    fn sums_and_differences_are_exact_or_refused() {
        let too_large = |code: &str| Err(MoneyError::TooLarge { currency: code.parse().unwrap() });
        assert_eq!(money(10, "EUR").checked_add(money(-3, "EUR")), Ok(money(7, "EUR")));
        assert_eq!(money(10, "EUR").checked_sub(money(30, "EUR")), Ok(money(-20, "EUR")));
        assert_eq!(money(i64::MAX, "EUR").checked_add(money(1, "EUR")), too_large("EUR"));
        assert_eq!(money(i64::MIN, "JPY").checked_sub(money(1, "JPY")), too_large("JPY"));
        assert_eq!(money(i64::MIN, "JPY").checked_neg(), too_large("JPY"));
        assert_eq!(money(5, "JPY").checked_neg(), Ok(money(-5, "JPY")));
    }

    #[test]
    fn amounts_of_two_currencies_do_not_add_up() {
        let (left, right) = (money(1, "INR"), money(1, "GBP"));
        let mismatch = Err(MoneyError::CurrencyMismatch { left: left.currency, right: right.currency });
        assert_eq!(left.checked_add(right), mismatch);
        assert_eq!(left.checked_sub(right), mismatch);
        assert_eq!(Money::checked_sum(left.currency, [left, right]), mismatch);
        assert_eq!(Money::checked_sum(left.currency, []), Ok(money(0, "INR")));
        assert_eq!(Money::checked_sum(left.currency, [left, left]), Ok(money(2, "INR")));
    }
}
