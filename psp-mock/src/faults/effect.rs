//! The effects a fault can have, and how they are written in JSON (`{"kind":"answer_lost","how":"hang"}`) and in rates.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What goes wrong with a call. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// The answer is slow but right.
    Latency {
        ms: u64,
        #[serde(default)]
        executes: Executes,
    },
    /// The call executes and the caller is not told.
    AnswerLost {
        #[serde(default)]
        how: How,
    },
    /// The call never executes and the caller is not told.
    Dropped {
        #[serde(default)]
        how: How,
    },
    /// The caller loses the connection now; the call executes `after_ms` later, by the mock's clock.
    ExecutesLate {
        after_ms: u64,
        #[serde(default)]
        how: How,
    },
    /// Executes, then answers an error; `stored` repeats that error for the key.
    ErrorExecuted {
        #[serde(default = "internal_error")]
        status: u16,
        #[serde(default = "yes")]
        stored: bool,
    },
    /// Answers an error without executing; `stored` freezes it for the key.
    ErrorNotExecuted {
        #[serde(default = "internal_error")]
        status: u16,
        #[serde(default)]
        stored: bool,
    },
    /// 429, not executed, never stored.
    RateLimited { retry_after_s: Option<u64> },
    /// The connection is reset.
    Reset {
        #[serde(default)]
        executed: bool,
    },
    /// Executes; the answer's body stops after `bytes` (half of it when absent).
    Truncated { bytes: Option<u32> },
    /// The created refund shows up in lists only after `ms`; by its id it is found at once.
    ListLag { ms: u64 },
    /// Answered as pending; succeeds after `after_ms`.
    LateSuccess { after_ms: u64 },
    /// Answered as succeeded; fails after `after_ms` and the money comes back.
    FailsLater {
        after_ms: u64,
        #[serde(default = "failure_reason")]
        reason: String,
    },
    /// Answered as pending for lack of balance; stays so unless told how it ends.
    InsufficientFunds { succeeds_after_ms: Option<u64>, fails_after_ms: Option<u64> },
    /// Refused for good with this code, stored under the key.
    Refuse {
        code: String,
        #[serde(default = "bad_request")]
        status: u16,
        message: Option<String>,
        param: Option<String>,
    },
    /// Refunds another amount or currency than asked; with `answer_only` just the create's answer says so.
    WrongAnswer {
        amount: Option<i64>,
        currency: Option<String>,
        #[serde(default)]
        answer_only: bool,
    },
    /// Something happens to an event on its way.
    Webhook(WebhookFault),
    /// The settlement report does not say what happened.
    Settlement(Gap),
}

/// When a slow call executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Executes {
    /// On arrival: a lookup during the wait finds it.
    #[default]
    First,
    /// Just before the answer, whether or not the caller still waits.
    Last,
}

/// How a caller is left without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The connection is closed.
    #[default]
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing comes until the caller gives up (ten minutes at most).
    Hang,
    /// A proxy answers 504.
    GatewayTimeout,
}

/// What happens to an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum WebhookFault {
    /// Delivered `times` times.
    Duplicate {
        #[serde(default = "two")]
        times: u32,
    },
    /// Events of one change arrive in reverse order and `hold_ms` late, so that later changes overtake them.
    Reordered {
        #[serde(default)]
        hold_ms: u64,
    },
    /// Without the signature header.
    Unsigned,
    /// Signed with another secret.
    Forged,
    /// Never delivered.
    Withheld,
}

/// What is wrong with a refund's line in the settlement report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "gap", rename_all = "snake_case", deny_unknown_fields)]
pub enum Gap {
    Missing,
    /// A second line for a refund that nobody made.
    Extra,
    /// The amount is larger by `by` minor units.
    AmountOff {
        #[serde(default = "one_unit")]
        by: i64,
    },
    Doubled,
    /// Reported `by_s` seconds later, so usually in the next report.
    Late {
        #[serde(default = "one_day")]
        by_s: u64,
    },
    /// The category is one that no reader knows.
    UnknownType {
        #[serde(default = "unknown_category")]
        category: String,
    },
}

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

    /// Whether the effect is on the refund itself: it would be wasted on a call whose key already has a result.
    pub(crate) fn needs_execution(&self) -> bool {
        match self {
            Self::Latency { .. }
            | Self::AnswerLost { .. }
            | Self::Dropped { .. }
            | Self::RateLimited { .. }
            | Self::Reset { .. } => false,
            Self::ErrorNotExecuted { stored, .. } => *stored,
            Self::Truncated { .. } => false,
            Self::ExecutesLate { .. }
            | Self::ErrorExecuted { .. }
            | Self::ListLag { .. }
            | Self::LateSuccess { .. } => true,
            Self::FailsLater { .. }
            | Self::InsufficientFunds { .. }
            | Self::Refuse { .. }
            | Self::WrongAnswer { .. } => true,
            Self::Webhook(_) | Self::Settlement(_) => true,
        }
    }
}

fn internal_error() -> u16 {
    500
}

fn bad_request() -> u16 {
    400
}

fn yes() -> bool {
    true
}

fn two() -> u32 {
    2
}

fn one_unit() -> i64 {
    1
}

fn one_day() -> u64 {
    24 * 60 * 60
}

fn failure_reason() -> String {
    "lost_or_stolen_card".to_owned()
}

fn unknown_category() -> String {
    "refund_adjustment_v2".to_owned()
}
