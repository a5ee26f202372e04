//! Amounts as decimal text: read exactly or refused, written with the currency's places.
//!
//! Read is `digits` or `digits.digits`, nothing else: a sign, an exponent, a space, a thousands mark, a comma or a missing digit
//! is refused, because each of them has been read two ways somewhere. Fewer decimals than the currency has are exact, more are
//! taken only as zeros.

use super::{Currency, Money};
use std::fmt;

/// Longest text that is looked at; the largest amount needs 20 characters.
const TEXT_MAX: usize = 40;

/// Why a text is not an amount. Each says what to send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("the amount is empty: send digits such as {}", example(*currency))]
    Empty { currency: Currency },
    #[error("the amount has {length} characters: send at most {TEXT_MAX}")]
    TooLong { length: usize },
    #[error("the amount holds {found:?}: send digits and at most one point, such as {}", example(*currency))]
    Character { found: char, currency: Currency },
    #[error("the amount needs digits on both sides of one point: send it such as {}", example(*currency))]
    Form { currency: Currency },
    #[error("{currency} has {} decimal places and the amount needs more: send it such as {}", currency.exponent(), example(*currency))]
    TooPrecise { currency: Currency },
    #[error("the amount is too large: send at most {}", Money::new(i64::MAX, *currency).to_decimal())]
    TooLarge { currency: Currency },
}

fn example(currency: Currency) -> String {
    Money::new(12_345, currency).to_decimal()
}

impl Money {
    /// Reads an unsigned decimal amount in major units, exactly.
    pub fn parse_decimal(text: &str, currency: Currency) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::Empty { currency });
        }
        if text.len() > TEXT_MAX {
            return Err(ParseError::TooLong { length: text.chars().count() });
        }
        if let Some(found) = text.chars().find(|c| !(c.is_ascii_digit() || *c == '.')) {
            return Err(ParseError::Character { found, currency });
        }
        let (whole, part) = match text.split_once('.') {
            Some((whole, part)) if !whole.is_empty() && !part.is_empty() && !part.contains('.') => (whole, part),
            Some(_) => return Err(ParseError::Form { currency }),
            None => (text, ""),
        };
        let places = currency.exponent() as usize;
        let (kept, beyond) = part.split_at(part.len().min(places));
        if beyond.bytes().any(|digit| digit != b'0') {
            return Err(ParseError::TooPrecise { currency });
        }
        let missing = std::iter::repeat_n(b'0', places - kept.len());
        let minor = whole.bytes().chain(kept.bytes()).chain(missing).try_fold(0_i64, |minor, digit| {
            minor.checked_mul(10).and_then(|minor| minor.checked_add(i64::from(digit - b'0')))
        });
        minor.map(|minor| Self { minor, currency }).ok_or(ParseError::TooLarge { currency })
    }

    /// As [`Self::parse_decimal`], with one `-` allowed before the digits: for reports, which sign their amounts.
    pub fn parse_signed_decimal(text: &str, currency: Currency) -> Result<Self, ParseError> {
        match text.strip_prefix('-') {
            Some(size) => Self::parse_decimal(size, currency).map(|money| Self { minor: -money.minor, ..money }),
            None => Self::parse_decimal(text, currency),
        }
    }

    /// The amount in major units with the currency's places and no currency: `10.50`, `500`, `-0.05`.
    #[must_use]
    pub fn to_decimal(self) -> String {
        let (sign, size) = (if self.minor < 0 { "-" } else { "" }, self.minor.unsigned_abs());
        match self.currency.exponent() {
            0 => format!("{sign}{size}"),
            places => {
                let unit = 10_u64.pow(places);
                format!("{sign}{}.{:0width$}", size / unit, size % unit, width = places as usize)
            }
        }
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_decimal(), self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::tests::money;
    use proptest::prelude::*;

    fn check(text: &str, code: &str, expected: Result<i64, &str>) {
        let read = Money::parse_decimal(text, code.parse().unwrap());
        match expected {
            Ok(minor) => assert_eq!(read, Ok(money(minor, code)), "{text:?} {code}"),
            Err(part) => {
                let message = read.expect_err(text).to_string();
                assert!(message.contains(part), "{text:?} {code}: {message}");
            }
        }
    }

    #[test]
    fn amounts_that_floats_miss_are_read_to_the_last_digit() {
        for (text, minor) in [
            ("19.99", 1_999),
            ("8.29", 829),
            ("8.20", 820),
            ("17.99", 1_799),
            ("9.95", 995),
            ("17.08", 1_708),
            ("1.15", 115),
            ("4.35", 435),
            ("0.29", 29),
            ("2.01", 201),
            ("64.10", 6_410),
            ("1005.01", 100_501),
            ("90071992547409.91", 9_007_199_254_740_991),
            ("90071992547409.93", 9_007_199_254_740_993),
            ("92233720368547758.07", i64::MAX),
        ] {
            check(text, "USD", Ok(minor));
        }
    }

    #[test]
    fn every_cent_up_to_a_hundred_reads_back() {
        for minor in 1..=10_000 {
            check(&format!("{}.{:02}", minor / 100, minor % 100), "USD", Ok(minor));
        }
    }

    #[test]
    fn fewer_or_zero_decimals_are_exact_and_more_are_refused() {
        check("10.5", "USD", Ok(1_050));
        check("10", "USD", Ok(1_000));
        check("0", "USD", Ok(0));
        check("007", "USD", Ok(700));
        check("500.00", "JPY", Ok(500));
        check("1.2550", "KWD", Ok(1_255));
        check("1.2345", "CLF", Ok(12_345));
        check("10.505", "USD", Err("has 2 decimal places"));
        check("500.5", "JPY", Err("send it such as 12345"));
        check("1.2555", "KWD", Err("send it such as 12.345"));
    }

    #[test]
    fn what_could_be_read_two_ways_is_refused_with_what_to_send() {
        check("", "USD", Err("send digits such as 123.45"));
        for text in [
            "-50.00", "+1", "1e3", "1E3", "NaN", "inf", " 1", "1 ", "1,000.00", "1,5", "1'000", "1_000", "０", "٣",
            "(1)", "$1",
        ] {
            check(text, "USD", Err("send digits and at most one point"));
        }
        for text in [".5", "5.", ".", "1.2.3", "1..2"] {
            check(text, "USD", Err("both sides of one point"));
        }
        check("92233720368547758.08", "USD", Err("send at most 92233720368547758.07"));
        check("9223372036854775808", "JPY", Err("send at most 9223372036854775807"));
        check(&"1".repeat(41), "USD", Err("has 41 characters"));
    }

    #[test]
    fn reports_may_sign_their_amounts() {
        let usd = "USD".parse().unwrap();
        assert_eq!(Money::parse_signed_decimal("-12.34", usd), Ok(money(-1_234, "USD")));
        assert_eq!(Money::parse_signed_decimal("12.34", usd), Ok(money(1_234, "USD")));
        for text in ["--1", "+1", "1-", "-", "(1.00)"] {
            assert!(Money::parse_signed_decimal(text, usd).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_written_with_the_currencys_places() {
        for (minor, code, text) in [
            (1_050, "USD", "10.50"),
            (1_255, "KWD", "1.255"),
            (500, "JPY", "500"),
            (-5, "USD", "-0.05"),
            (12_345, "CLF", "1.2345"),
            (0, "USD", "0.00"),
            (9_007_199_254_740_993, "JPY", "9007199254740993"),
            (i64::MIN, "USD", "-92233720368547758.08"),
        ] {
            assert_eq!(money(minor, code).to_decimal(), text);
        }
        assert_eq!(money(1_050, "EUR").to_string(), "10.50 EUR");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(minor in -i64::MAX..=i64::MAX, code in prop::sample::select(vec!["USD", "JPY", "KWD", "CLF"])) {
            let amount = money(minor, code);
            prop_assert_eq!(Money::parse_signed_decimal(&amount.to_decimal(), amount.currency), Ok(amount));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,50}") {
            let currency = "KWD".parse().unwrap();
            if let Ok(amount) = Money::parse_signed_decimal(&text, currency) {
                prop_assert!(text.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'-'), "{text:?} was read as {amount}");
            }
        }
    }
}
