//! Parts of an amount: an exact split by weights, and a percentage with one documented rounding.

use super::Money;

/// Most parts an amount is split into.
const PARTS_MAX: usize = 10_000;

/// Why an amount can not be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    #[error("there is nothing to split by: send at least one weight above zero")]
    NoWeight,
    #[error("{parts} parts are too many: send at most {PARTS_MAX}")]
    TooMany { parts: usize },
}

/// A percentage from 0 to 100 with at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent {
    millionths: u32,
}

/// The text is not a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a percentage is 0 to 100 with at most {PERCENT_PLACES} decimals: send it such as 2.5")]
pub struct PercentError;

const PERCENT_PLACES: usize = 6;
/// One hundred percent.
const WHOLE: u32 = 100_000_000;

impl std::str::FromStr for Percent {
    type Err = PercentError;
    fn from_str(text: &str) -> Result<Self, PercentError> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str, longest: usize| {
            (1..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(whole, 3) || !digits(part, PERCENT_PLACES) {
            return Err(PercentError);
        }
        let millionths: u32 = format!("{whole}{part:0<PERCENT_PLACES$}").parse().map_err(|_| PercentError)?;
        if millionths > WHOLE { Err(PercentError) } else { Ok(Self { millionths }) }
    }
}

impl Money {
    /// That percentage of the amount, rounded to the minor unit, halves away from zero: 10 % of KWD 1.255 is KWD 0.126.
    #[must_use]
    pub fn percent(self, percent: Percent) -> Self {
        let exact = i128::from(self.minor) * i128::from(percent.millionths);
        let half = i128::from(WHOLE / 2) * exact.signum();
        // At most 100 %, so it fits where the amount did.
        let minor = i64::try_from((exact + half) / i128::from(WHOLE)).unwrap_or(self.minor);
        Self { minor, ..self }
    }

    /// Splits the amount by weights so that the parts add up to it: each gets its share rounded towards zero, then the units left
    /// over go one by one to the largest remainders, ties in the order given.
    pub fn allocate(self, weights: &[u64]) -> Result<Vec<Self>, ShareError> {
        if weights.len() > PARTS_MAX {
            return Err(ShareError::TooMany { parts: weights.len() });
        }
        let sum: u128 = weights.iter().copied().map(u128::from).sum();
        if sum == 0 {
            return Err(ShareError::NoWeight);
        }
        let size = u128::from(self.minor.unsigned_abs());
        // No overflow: both factors are below 2^64.
        let mut parts: Vec<u128> = weights.iter().map(|weight| size * u128::from(*weight) / sum).collect();
        let remainder = |index: &usize| size * u128::from(weights[*index]) % sum;
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(remainder(index)));
        let left_over = size - parts.iter().sum::<u128>();
        for index in order.into_iter().take(usize::try_from(left_over).unwrap_or(usize::MAX)) {
            parts[index] += 1;
        }
        let sign = i128::from(self.minor.signum());
        let signed = |part: u128| i64::try_from(sign * i128::try_from(part).unwrap_or(0)).unwrap_or(self.minor);
        Ok(parts.into_iter().map(|part| Self { minor: signed(part), ..self }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::tests::money;
    use proptest::prelude::*;

    fn check(total: i64, weights: &[u64], expected: &[i64]) {
        let parts = money(total, "USD").allocate(weights).unwrap();
        assert_eq!(parts.iter().map(|part| part.minor).collect::<Vec<_>>(), expected, "{total} by {weights:?}");
    }

    #[test]
    fn units_left_over_go_to_the_largest_remainders_in_order() {
        check(103, &[100, 100], &[52, 51]);
        check(100, &[1, 1, 1], &[34, 33, 33]);
        check(1_000, &[70, 20, 10], &[700, 200, 100]);
        check(5, &[3, 3, 1], &[2, 2, 1]);
        check(1, &[0, 100], &[0, 1]);
        check(-100, &[1, 1, 1], &[-34, -33, -33]);
        check(0, &[1, 2], &[0, 0]);
        check(i64::MAX, &[u64::MAX], &[i64::MAX]);
        check(i64::MIN, &[u64::MAX, 0], &[i64::MIN, 0]);
    }

    #[test]
    fn nothing_to_split_by_is_refused() {
        assert_eq!(money(5, "USD").allocate(&[]), Err(ShareError::NoWeight));
        assert_eq!(money(5, "USD").allocate(&[0, 0]), Err(ShareError::NoWeight));
        assert_eq!(money(5, "USD").allocate(&[1; 10_001]), Err(ShareError::TooMany { parts: 10_001 }));
    }

    #[test]
    fn a_percentage_rounds_halves_away_from_zero() {
        for (minor, code, percent, expected) in [
            (1_255, "KWD", "10", 126),
            (-1_255, "KWD", "10", -126),
            (1_254, "KWD", "10", 125),
            (1_050, "USD", "2.9", 30),
            (500, "JPY", "0.1", 1),
            (499, "JPY", "0.1", 0),
            (i64::MAX, "USD", "100", i64::MAX),
            (i64::MIN, "USD", "100.000000", i64::MIN),
            (1_000, "USD", "0", 0),
        ] {
            assert_eq!(
                money(minor, code).percent(percent.parse().unwrap()),
                money(expected, code),
                "{minor} {percent} %"
            );
        }
        for text in ["", "-1", "101", "100.000001", "1e1", "1.2345678", ".5", "5.", "ten", "1,5"] {
            assert_eq!(text.parse::<Percent>(), Err(PercentError), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_and_none_is_off_by_a_unit(total in any::<i64>(), weights in prop::collection::vec(any::<u64>(), 1..20)) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let parts = money(total, "USD").allocate(&weights).unwrap();
            prop_assert_eq!(parts.iter().map(|part| i128::from(part.minor)).sum::<i128>(), i128::from(total));
            prop_assert!(parts.iter().all(|part| part.minor.signum() * total.signum() >= 0));
        }
    }
}
