//! The times of a session, checked once at start; the broken rule is named.
//!
//! Left out: the hold maximum must exceed the slowest provider's timeout; whoever knows the providers checks that.

use std::time::Duration;

/// Longest TTL: what a dead replica held waits this long.
pub const TTL_MAX: Duration = Duration::from_secs(600);

/// Shortest TTL: below it a scheduling hiccup costs the session.
pub const TTL_MIN: Duration = Duration::from_millis(500);

/// The times of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseParameters {
    /// How long the service keeps a silent session.
    pub ttl: Duration,
    /// How long before the TTL's end the holder stops believing.
    pub margin: Duration,
    /// From one renewal to the next.
    pub renew_every: Duration,
    /// Every request to the service has at most this long.
    pub request_timeout: Duration,
    /// Longest step under one hold: renewal must not hide a stuck task.
    pub hold_max: Duration,
}

/// A rule the times break.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    #[error("lease ttl {0:?} is outside {TTL_MIN:?} to {TTL_MAX:?}")]
    TtlRange(Duration),
    #[error("lease {0} is zero")]
    Zero(&'static str),
    #[error("lease ttl {ttl:?} is less than 3 x renew_every {renew_every:?}: two renewals must be able to fail")]
    TtlBelowThreeRenewals { ttl: Duration, renew_every: Duration },
    #[error("lease margin {margin:?} is not below ttl/2 ({half:?}): too little trust would be left")]
    MarginTooLarge { margin: Duration, half: Duration },
    #[error(
        "lease request_timeout {request_timeout:?} is not below renew_every {renew_every:?}: requests would pile up"
    )]
    TimeoutTooLong { request_timeout: Duration, renew_every: Duration },
    #[error(
        "lease renew_every + request_timeout ({needed:?}) is not below ttl - margin ({trust:?}): one lost request would end trust"
    )]
    OneLossEndsTrust { needed: Duration, trust: Duration },
}

impl Default for LeaseParameters {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(10),
            margin: Duration::from_secs(2),
            renew_every: Duration::from_secs(3),
            request_timeout: Duration::from_secs(2),
            hold_max: Duration::from_secs(75),
        }
    }
}

impl LeaseParameters {
    /// Checks every rule; the first broken one is the error.
    pub fn validate(self) -> Result<Self, ParameterError> {
        let Self { ttl, margin, renew_every, request_timeout, hold_max } = self;
        if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
            return Err(ParameterError::TtlRange(ttl));
        }
        let named = [
            ("margin", margin),
            ("renew_every", renew_every),
            ("request_timeout", request_timeout),
            ("hold_max", hold_max),
        ];
        if let Some((name, _)) = named.into_iter().find(|(_, value)| value.is_zero()) {
            return Err(ParameterError::Zero(name));
        }
        if ttl < renew_every.saturating_mul(3) {
            return Err(ParameterError::TtlBelowThreeRenewals { ttl, renew_every });
        }
        if margin >= ttl / 2 {
            return Err(ParameterError::MarginTooLarge { margin, half: ttl / 2 });
        }
        if request_timeout >= renew_every {
            return Err(ParameterError::TimeoutTooLong { request_timeout, renew_every });
        }
        let (needed, trust) = (renew_every + request_timeout, ttl - margin);
        if needed >= trust {
            return Err(ParameterError::OneLossEndsTrust { needed, trust });
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn check(change: fn(&mut LeaseParameters), expected: Option<&str>) {
        let mut parameters = LeaseParameters::default();
        change(&mut parameters);
        let found = parameters.validate().err().map(|error| error.to_string());
        match (expected, &found) {
            (None, None) => {}
            (Some(expected), Some(found)) if found.contains(expected) => {}
            _ => panic!("expected {expected:?}, found {found:?}"),
        }
    }

    #[test]
    fn the_broken_rule_is_named() {
        check(|_| (), None);
        check(|p| p.ttl = ms(8_999), Some("3 x renew_every"));
        check(|p| p.ttl = ms(9_000), None);
        check(|p| p.ttl = ms(499), Some("outside"));
        check(|p| p.ttl = ms(600_001), Some("outside"));
        check(|p| p.margin = ms(5_000), Some("margin 5s"));
        check(|p| (p.margin, p.request_timeout) = (ms(4_900), ms(2_900)), Some("one lost request"));
        check(|p| p.request_timeout = ms(3_000), Some("request_timeout 3s"));
        check(|p| p.margin = Duration::ZERO, Some("margin is zero"));
        check(|p| p.renew_every = Duration::ZERO, Some("renew_every is zero"));
        check(|p| p.request_timeout = Duration::ZERO, Some("request_timeout is zero"));
        check(|p| p.hold_max = Duration::ZERO, Some("hold_max is zero"));
    }
}
