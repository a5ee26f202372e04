//! Currencies: those that ISO 4217 lists with a minor unit. Any other code is refused where text becomes a [`Currency`], so that
//! behind that line every currency has its decimal places.

use super::iso4217::TABLE;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An active ISO 4217 currency with a minor unit. Ordered by its code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency(
    /// Its row in the table; never stored or sent, so rows may move between versions.
    u8,
);

/// The text is not a currency this system can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an active ISO 4217 currency with a minor unit: send three upper-case letters such as EUR")]
pub struct CurrencyError(pub String);

/// How much of a refused text its error repeats, in characters.
const SHOWN_MAX: usize = 16;

impl Currency {
    /// The currency of an upper-case code, if the table has it. Usable in constants.
    #[must_use]
    pub const fn known(code: &str) -> Option<Self> {
        let Some(wanted) = packed(code) else { return None };
        let (mut low, mut high) = (0, TABLE.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match packed(TABLE[middle].0) {
                Some(found) if found == wanted => return Some(Self(middle as u8)),
                Some(found) if found < wanted => low = middle + 1,
                _ => high = middle,
            }
        }
        None
    }

    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        TABLE[self.0 as usize].0
    }

    /// Decimal places of its minor unit: 0, 2, 3 or 4.
    #[must_use]
    pub const fn exponent(self) -> u32 {
        TABLE[self.0 as usize].1 as u32
    }
}

/// The three letters as one number that sorts as they do.
const fn packed(code: &str) -> Option<u32> {
    match *code.as_bytes() {
        [a, b, c] => Some((a as u32) << 16 | (b as u32) << 8 | c as u32),
        _ => None,
    }
}

impl std::str::FromStr for Currency {
    type Err = CurrencyError;
    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        Self::known(text).ok_or_else(|| CurrencyError(text.chars().take(SHOWN_MAX).collect()))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(CodeVisitor)
    }
}

/// Reads the code without keeping the text.
struct CodeVisitor;

impl serde::de::Visitor<'_> for CodeVisitor {
    type Value = Currency;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ISO 4217 code such as EUR")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Currency, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_code_reads_back() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(TABLE.len() <= 256);
        for (code, exponent) in TABLE {
            let currency: Currency = code.parse().unwrap();
            assert_eq!((currency.as_str(), currency.exponent()), (code, u32::from(exponent)));
            assert!(matches!(exponent, 0 | 2 | 3 | 4), "{code}");
        }
    }

    #[test]
    fn decimal_places_are_those_of_the_standard() {
        for (code, exponent) in
            [("USD", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4), ("UGX", 0), ("ISK", 0), ("MGA", 2), ("HUF", 2), ("IQD", 3)]
        {
            assert_eq!(Currency::known(code).map(Currency::exponent), Some(exponent), "{code}");
        }
    }

    #[test]
    fn what_is_not_an_active_code_with_a_minor_unit_is_refused() {
        for text in ["", "EU", "EURO", "eur", "Eur", "€", "ZZZ", "AAA", "XXX", "XAU", "XTS", "DEM", "123", "ÄÖ", "E R"]
        {
            assert_eq!(text.parse::<Currency>(), Err(CurrencyError(text.to_owned())), "{text:?}");
        }
        assert_eq!("x".repeat(5_000).parse::<Currency>(), Err(CurrencyError("x".repeat(16))));
    }

    #[test]
    fn currencies_sort_by_code() {
        assert!(Currency::known("EUR") < Currency::known("USD"));
    }
}
