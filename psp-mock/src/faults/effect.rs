//! The effects a fault can have, and how they are written in JSON: `{"kind":"answer_lost","how":"hang"}`.

use serde::{Deserialize, Serialize};

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
    /// Answered as requiring an action of the customer; stays so unless told when it succeeds.
    RequiresAction { succeeds_after_ms: Option<u64> },
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
    /// Whether the effect is on the refund itself: it would be wasted on a call whose key already has a result.
    pub(crate) fn needs_execution(&self) -> bool {
        match self {
            Self::Latency { .. } | Self::AnswerLost { .. } | Self::Dropped { .. } | Self::Truncated { .. } => false,
            Self::RateLimited { .. } | Self::Reset { .. } => false,
            Self::ErrorNotExecuted { stored, .. } => *stored,
            Self::ExecutesLate { .. }
            | Self::ErrorExecuted { .. }
            | Self::ListLag { .. }
            | Self::LateSuccess { .. } => true,
            Self::FailsLater { .. } | Self::InsufficientFunds { .. } | Self::RequiresAction { .. } => true,
            Self::Refuse { .. } | Self::WrongAnswer { .. } | Self::Webhook(_) | Self::Settlement(_) => true,
        }
    }
}

pub(super) fn internal_error() -> u16 {
    500
}

fn bad_request() -> u16 {
    400
}

fn yes() -> bool {
    true
}

pub(super) fn two() -> u32 {
    2
}

fn one_unit() -> i64 {
    1
}

fn one_day() -> u64 {
    24 * 60 * 60
}

pub(super) fn failure_reason() -> String {
    "lost_or_stolen_card".to_owned()
}

fn unknown_category() -> String {
    "refund_adjustment_v2".to_owned()
}
