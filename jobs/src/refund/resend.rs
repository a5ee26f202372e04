//! The resend rule: when a second create with the same key is safe.
//!
//! Only when every create is absent by the rule, and both the database's clock and the local one are well inside the key's
//! lifetime. The margin covers two full holds and a tenth of the lifetime, because a sender may be stopped between this check and
//! its first byte. A key that lives shorter than two hours is never relied on.

use super::capabilities::Capabilities;
use super::facts::{Facts, can_look_up};
use super::intent::Intent;
use chrono::{DateTime, TimeDelta, Utc};

/// A key must live at least this long for a resend to be considered.
pub const KEY_LIFETIME_MIN: TimeDelta = TimeDelta::hours(2);

/// Why a create may not be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoResend {
    #[error("absence is not proved")]
    NotAbsent,
    #[error("the provider takes no idempotency key")]
    NoKey,
    #[error("the provider forgets keys within two hours")]
    LifetimeTooShort,
    #[error("no create is on record whose key could still be honoured")]
    NoKeyOnRecord,
    #[error("the key may be forgotten before a resend would arrive")]
    KeyTooOld,
    #[error("the provider said the payment holds no more to refund")]
    AlreadyRefunded,
    #[error("the provider refused a create")]
    Rejected,
}

/// The two clocks a resend must agree with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub database: DateTime<Utc>,
    pub local: DateTime<Utc>,
}

/// The grounds on which a resend is allowed, to be stored with it.
pub fn grounds(intent: &Intent, facts: &Facts<'_>, capabilities: &Capabilities, now: Now) -> Result<String, NoResend> {
    let lifetime = capabilities.key_lifetime.ok_or(NoResend::NoKey)?;
    if lifetime < KEY_LIFETIME_MIN {
        return Err(NoResend::LifetimeTooShort);
    }
    if facts.was_already_refunded() {
        return Err(NoResend::AlreadyRefunded);
    }
    if facts.last_rejection().is_some() {
        return Err(NoResend::Rejected);
    }
    let expires_at = facts.key_expires_at().ok_or(NoResend::NoKeyOnRecord)?;
    let margin = (capabilities.hold_max * 2).max(lifetime / 10);
    let safe_until = expires_at - margin;
    if now.database >= safe_until || now.local >= safe_until {
        return Err(NoResend::KeyTooOld);
    }
    let proof = if can_look_up(intent, capabilities) {
        let reading = facts.absence_proof().ok_or(NoResend::NotAbsent)?;
        format!("absent in lookup {} begun {}", reading.attempt_id, stamp(reading.started_at))
    } else {
        let deadline = facts.given_up_at().ok_or(NoResend::NotAbsent)?;
        if now.database < deadline {
            return Err(NoResend::NotAbsent);
        }
        format!("no lookup at this provider, last create given up {}", stamp(deadline))
    };
    Ok(format!("{proof}; key honoured until {}, resend safe until {}", stamp(expires_at), stamp(safe_until)))
}

fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
