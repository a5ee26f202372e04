//! `Retry-After`: seconds, or a date read against the answer's own `Date`, so that our clock does not matter.

use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// Longer waits are cut to this: a broken header must not park a refund for days.
const WAIT_MAX_MS: u64 = 3_600_000;

/// Milliseconds to wait, if the header says so in a way we know.
pub(super) fn read_ms(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait_ms = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse::<u64>().map_or(WAIT_MAX_MS, |seconds| seconds.saturating_mul(1_000))
    } else {
        let (until, now) = (date(headers, RETRY_AFTER)?, date(headers, DATE)?);
        u64::try_from((until - now).num_milliseconds()).unwrap_or(0)
    };
    Some(wait_ms.min(WAIT_MAX_MS))
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<DateTime<chrono::FixedOffset>> {
    DateTime::parse_from_rfc2822(headers.get(name)?.to_str().ok()?.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(retry_after: Option<&'static str>, date: Option<&'static str>, expected_ms: Option<u64>) {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        if let Some(value) = date {
            headers.insert(DATE, value.parse().unwrap());
        }
        assert_eq!(read_ms(&headers), expected_ms, "{retry_after:?} {date:?}");
    }

    #[test]
    fn a_wait_is_read_from_seconds_or_a_date_and_bounded() {
        let now = Some("Tue, 01 Dec 2026 10:00:00 GMT");
        check(None, now, None);
        check(Some("7"), now, Some(7_000));
        check(Some("0"), None, Some(0));
        check(Some("86400"), None, Some(3_600_000));
        check(Some("99999999999999999999999999"), None, Some(3_600_000));
        check(Some("Tue, 01 Dec 2026 10:00:30 GMT"), now, Some(30_000));
        check(Some("Tue, 01 Dec 2026 09:00:00 GMT"), now, Some(0));
        check(Some("Wed, 02 Dec 2026 10:00:00 GMT"), now, Some(3_600_000));
        check(Some("Tue, 01 Dec 2026 10:00:30 GMT"), None, None);
        for text in ["", "soon", "-1", "1.5", "+3", "0x10"] {
            check(Some(text), now, None);
        }
    }
}
