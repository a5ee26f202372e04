//! Amounts as callers write and read them: decimal text with the currency's places, or minor units as text.
//!
//! JSON numbers lose digits in many readers (9007199254740993 becomes ...992), so what is sent out is text. Floats are refused on the way
//! in. Decimal text must not have more places than the currency: nothing is ever rounded.

use jobs::money::{Currency, Money, ParseError};
use serde::{Deserialize, Deserializer, de};
use std::fmt;

/// The amount can not be refunded as written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error(transparent)]
    Decimal(#[from] ParseError),
    #[error("{0:?} are no minor units: send a whole number, such as 1250 or \"1250\", at most 9223372036854775807")]
    Minor(String),
    #[error("the amount is {0}: it must be more than zero")]
    NotPositive(Money),
}

/// Reads a positive decimal amount.
pub fn parse_decimal(text: &str, currency: Currency) -> Result<Money, AmountError> {
    positive(Money::parse_decimal(text, currency)?)
}

/// Reads positive minor units.
pub fn parse_minor(text: &str, currency: Currency) -> Result<Money, AmountError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let error = || AmountError::Minor(shortened(text));
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error());
    }
    positive(Money { minor: text.parse().map_err(|_| error())?, currency })
}

fn positive(money: Money) -> Result<Money, AmountError> {
    if money.minor <= 0 { Err(AmountError::NotPositive(money)) } else { Ok(money) }
}

/// Messages repeat what was sent, but not pages of it.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
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
    fn big_amounts_keep_their_digits_both_ways() {
        let usd = currency("USD");
        let money = parse_minor("9007199254740993", usd).unwrap();
        assert_eq!(parse_decimal("90071992547409.93", usd), Ok(money));
        assert_eq!(money.to_decimal(), "90071992547409.93");
        assert_eq!(parse_minor("9223372036854775807", usd).unwrap().minor, i64::MAX);
    }

    #[test]
    fn what_is_not_a_positive_exact_amount_is_refused() {
        for text in ["", "-50.00", "0", "0.00", "1e3", "NaN", "1,00", "1.234", "92233720368547758.08"] {
            assert!(parse_decimal(text, currency("EUR")).is_err(), "{text:?}");
        }
        for text in ["", "-", "-5000", "0", "1.0", "1e3", "9223372036854775808", "+5", "NaN", " 1", "\u{661}"] {
            assert!(parse_minor(text, currency("EUR")).is_err(), "{text:?}");
        }
    }
}
