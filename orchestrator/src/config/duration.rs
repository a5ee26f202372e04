//! Durations as people write them: `250ms`, `45s`, `5m`, `24h`, `30d`.

use std::time::Duration;

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write a whole number and a unit, such as 250ms, 45s, 5m, 24h or 30d")]
pub struct DurationError(pub String);

/// Reads a whole number with its unit; a number without one is refused, since a guess would be off by a factor.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError(text.to_owned());
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
    let number: u64 = text[..digits].parse().map_err(|_| error())?;
    let unit_ms = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(error()),
    };
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(error)
}

/// The shortest way to write it.
#[must_use]
pub(super) fn show(duration: Duration) -> String {
    let ms = duration.as_millis();
    for (unit_ms, unit) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if ms > 0 && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit_and_written_back() {
        for (text, ms) in
            [("0ms", 0), ("250ms", 250), ("45s", 45_000), ("5m", 300_000), ("23h", 82_800_000), ("1d", 86_400_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(show(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn what_is_not_a_whole_number_with_a_unit_is_refused() {
        for text in ["", "5", "s", "1.5s", "-1s", "5 s", "5S", "5y", "99999999999999999999d", "9999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
