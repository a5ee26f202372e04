//! Amounts as callers write and read them: decimal text with the currency's places, or minor units as text.
//!
//! JSON numbers lose digits in many readers (9007199254740993 becomes ...992), so what is sent out is text. Floats are refused on the way
//! in. Decimal text must not have more places than the currency: nothing is ever rounded.

use jobs::money::{Currency, Money};
use serde::{Deserialize, Deserializer, de};
use std::fmt;

/// The amount can not be refunded as written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error(
        "{0:?} is not a decimal amount: write digits with a point, such as \"12.50\", no sign, exponent or separators"
    )]
    NotDecimal(String),
    #[error("{text:?} has more than the {places} decimal places of {currency}")]
    TooManyPlaces { text: String, places: u32, currency: Currency },
    #[error("{0:?} is more than can be held: at most 9223372036854775807 minor units")]
    TooLarge(String),
    #[error("the amount is {0}: it must be more than zero")]
    NotPositive(String),
}

/// Decimal places of a currency by ISO 4217.
#[must_use]
pub fn places(currency: Currency) -> u32 {
    match currency.as_str() {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI" | "VND"
        | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    }
}

/// Reads a positive decimal amount.
pub fn parse_decimal(text: &str, currency: Currency) -> Result<Money, AmountError> {
    let not_decimal = || AmountError::NotDecimal(shortened(text));
    let (whole, part) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let digits_only = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !digits_only(whole) || !part.is_none_or(digits_only) {
        return Err(not_decimal());
    }
    let part = part.unwrap_or_default();
    let places = places(currency);
    let width = usize::try_from(places).unwrap_or(usize::MAX);
    if part.len() > width {
        return Err(AmountError::TooManyPlaces { text: shortened(text), places, currency });
    }
    let minor = format!("{whole}{part:0<width$}");
    positive(minor.parse().map_err(|_| AmountError::TooLarge(shortened(text)))?, currency)
}

/// Reads positive minor units.
pub fn parse_minor(text: &str, currency: Currency) -> Result<Money, AmountError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AmountError::NotDecimal(shortened(text)));
    }
    positive(text.parse().map_err(|_| AmountError::TooLarge(shortened(text)))?, currency)
}

fn positive(minor: i64, currency: Currency) -> Result<Money, AmountError> {
    if minor <= 0 {
        return Err(AmountError::NotPositive(minor.to_string()));
    }
    Ok(Money { minor, currency })
}

/// Messages repeat what was sent, but not pages of it.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Decimal text with all places of the currency.
#[must_use]
pub fn decimal(money: Money) -> String {
    let sign = if money.minor < 0 { "-" } else { "" };
    let digits = money.minor.unsigned_abs().to_string();
    let places = usize::try_from(places(money.currency)).unwrap_or(0);
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{part}")
}

/// For people: `12.50 EUR`.
#[must_use]
pub fn for_people(money: Money) -> String {
    format!("{} {}", decimal(money), money.currency)
}

/// Minor units in JSON: an integer, or text with an integer in it. Never a float.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinorText(pub String);

impl<'de> Deserialize<'de> for MinorText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = MinorText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("minor units as an integer, or as text such as \"1250\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<MinorText, E> {
                Ok(MinorText(text.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, minor: i64) -> Result<MinorText, E> {
                Ok(MinorText(minor.to_string()))
            }
            fn visit_u64<E: de::Error>(self, minor: u64) -> Result<MinorText, E> {
                Ok(MinorText(minor.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Decimal text in JSON. A number is refused: readers and writers of JSON would make a float of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecimalText(pub String);

impl<'de> Deserialize<'de> for DecimalText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = DecimalText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a decimal amount as text, such as \"12.50\" (or use amount_minor)")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<DecimalText, E> {
                Ok(DecimalText(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn currency(text: &str) -> Currency {
        text.parse().unwrap()
    }

    #[test]
    fn decimal_text_reads_as_minor_units_and_is_written_back() {
        let cases = [
            ("12.50", "EUR", 1_250),
            ("0.01", "EUR", 1),
            ("90071992547409.93", "USD", 9_007_199_254_740_993),
            ("92233720368547758.07", "USD", i64::MAX),
            ("1500", "JPY", 1_500),
            ("1.234", "KWD", 1_234),
            ("0.0001", "CLF", 1),
        ];
        for (text, code, minor) in cases {
            let money = Money { minor, currency: currency(code) };
            assert_eq!(parse_decimal(text, money.currency), Ok(money), "{text} {code}");
            assert_eq!(parse_minor(&minor.to_string(), money.currency), Ok(money));
            assert_eq!(decimal(money), text);
        }
        assert_eq!(parse_decimal("12", currency("EUR")).unwrap().minor, 1_200);
        assert_eq!(parse_decimal("12.5", currency("EUR")).unwrap().minor, 1_250);
        assert_eq!(decimal(Money { minor: -5, currency: currency("EUR") }), "-0.05");
    }

    #[test]
    fn what_is_not_a_positive_exact_amount_is_refused() {
        for text in [
            "",
            " ",
            "-50.00",
            "+1",
            "0",
            "0.00",
            "1e3",
            "NaN",
            "inf",
            "1,00",
            "1.",
            ".5",
            "1.234",
            "1.2.3",
            "0x10",
            "١",
            " 1",
            "1 ",
            "92233720368547758.08",
            "99999999999999999999",
        ] {
            assert!(parse_decimal(text, currency("EUR")).is_err(), "{text:?}");
        }
        for text in ["", "-5000", "0", "1.0", "1e3", "9223372036854775808", "+5", "NaN"] {
            assert!(parse_minor(text, currency("EUR")).is_err(), "{text:?}");
        }
        assert!(parse_decimal("1.5", currency("JPY")).is_err());
    }
}
