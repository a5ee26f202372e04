//! Effects by name, as rates on the command line give them: each with its usual parameters.

use super::effect::{Effect, Executes, How, WebhookFault, failure_reason, internal_error, two};
use std::time::Duration;

impl Effect {
    /// Names that can be given a rate, with their usual parameters.
    pub const NAMES: &[&str] = &[
        "latency",
        "answer_lost",
        "answer_lost_hang",
        "dropped",
        "dropped_hang",
        "executes_late",
        "error_executed",
        "error_not_executed",
        "rate_limited",
        "reset",
        "truncated",
        "list_lag",
        "late_success",
        "fails_later",
        "insufficient_funds",
        "webhook_duplicate",
        "webhook_reordered",
        "webhook_unsigned",
        "webhook_withheld",
    ];

    /// The effect of that name; `time` replaces its usual time where it has one.
    pub fn by_name(name: &str, time: Option<Duration>) -> Option<Self> {
        let ms = |usual: u64| time.map_or(usual, |t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX));
        Some(match name {
            "latency" => Self::Latency { ms: ms(45_000), executes: Executes::First },
            "answer_lost" => Self::AnswerLost { how: How::Close },
            "answer_lost_hang" => Self::AnswerLost { how: How::Hang },
            "dropped" => Self::Dropped { how: How::Close },
            "dropped_hang" => Self::Dropped { how: How::Hang },
            "executes_late" => Self::ExecutesLate { after_ms: ms(60_000), how: How::Close },
            "error_executed" => Self::ErrorExecuted { status: internal_error(), stored: true },
            "error_not_executed" => Self::ErrorNotExecuted { status: internal_error(), stored: false },
            "rate_limited" => Self::RateLimited { retry_after_s: None },
            "reset" => Self::Reset { executed: false },
            "truncated" => Self::Truncated { bytes: None },
            "list_lag" => Self::ListLag { ms: ms(5_000) },
            "late_success" => Self::LateSuccess { after_ms: ms(5_000) },
            "fails_later" => Self::FailsLater { after_ms: ms(5_000), reason: failure_reason() },
            "insufficient_funds" => {
                Self::InsufficientFunds { succeeds_after_ms: Some(ms(30_000)), fails_after_ms: None }
            }
            "webhook_duplicate" => Self::Webhook(WebhookFault::Duplicate { times: two() }),
            "webhook_reordered" => Self::Webhook(WebhookFault::Reordered { hold_ms: ms(1_000) }),
            "webhook_unsigned" => Self::Webhook(WebhookFault::Unsigned),
            "webhook_withheld" => Self::Webhook(WebhookFault::Withheld),
            _ => return None,
        })
    }
}
