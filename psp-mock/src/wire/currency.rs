//! Currency codes, and how the settlement report writes their amounts (major units, exponent by currency).

use super::ApiError;
use std::fmt;

/// Three lower-case letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Currency([u8; 3]);

const NO_DECIMALS: &[&str] =
    &["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"];
const THREE_DECIMALS: &[&str] = &["bhd", "jod", "kwd", "omr", "tnd"];

impl Currency {
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        match <[u8; 3]>::try_from(text.as_bytes()) {
            Ok(code) if code.iter().all(u8::is_ascii_alphabetic) => Ok(Self(code.map(|b| b.to_ascii_lowercase()))),
            _ => Err(ApiError::invalid(format!("Invalid currency: {text}.")).on("currency")),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("xxx")
    }

    /// The amount as the report writes it: `-12.34`, `500`, `1.234`.
    pub(crate) fn major(self, minor: i64) -> String {
        let exponent = match self.as_str() {
            code if NO_DECIMALS.contains(&code) => 0,
            code if THREE_DECIMALS.contains(&code) => 3,
            _ => 2,
        };
        let (sign, size) = (if minor < 0 { "-" } else { "" }, minor.unsigned_abs());
        let unit = 10_u64.pow(exponent);
        match exponent {
            0 => format!("{sign}{size}"),
            digits => format!("{sign}{}.{:0width$}", size / unit, size % unit, width = digits as usize),
        }
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_write_major_units_by_the_currencys_exponent() {
        let cases = [
            ("eur", -1234, "-12.34"),
            ("usd", 5, "0.05"),
            ("jpy", -500, "-500"),
            ("KWD", 1234, "1.234"),
            ("usd", 0, "0.00"),
        ];
        for (code, minor, expected) in cases {
            let currency = Currency::parse(code).expect(code);
            assert_eq!(currency.major(minor), expected, "{code} {minor}");
        }
        for bad in ["", "eu", "euro", "e1r"] {
            assert!(Currency::parse(bad).is_err(), "{bad}");
        }
    }
}
