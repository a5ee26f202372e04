//! What one call told us. Unknown is an outcome, not an error.

use super::state::PspStatus;
use crate::money::Money;
use serde::{Deserialize, Serialize};

/// A refund as the provider shows it, in our units: wire exponents are undone before it gets here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PspRefund {
    /// The provider's id of it.
    pub psp_refund_ref: String,
    pub status: PspStatus,
    pub amount: Money,
    /// Why it is pending or failed, in the provider's words.
    pub reason: Option<String>,
}

/// A refusal by the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The provider's code, for people and for reports.
    pub code: String,
    pub message: String,
    /// The provider repeats this answer to every call with the same key, so no create with that key can execute any more.
    pub stored_under_key: bool,
    pub class: RejectionClass,
}

/// What a refusal means for the intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectionClass {
    /// The refund can not be made as asked.
    Final,
    /// The payment holds no more to refund: it may be our own refund that used it up, so look.
    AlreadyRefunded,
    /// The key was used with another body: our bug, a person must look.
    KeyReused,
}

/// What one call told us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// A create was answered with a refund.
    Accepted { refund: PspRefund },
    /// A create was refused.
    Rejected { rejection: Rejection },
    /// The provider did not start on it: connection refused, too many requests.
    NotExecuted { reason: String, retry_after_ms: Option<u64> },
    /// A complete reading showed these refunds with our reference; one or more.
    Found { refunds: Vec<PspRefund> },
    /// A complete reading showed none with our reference.
    Absent,
    /// The call may or may not have had its effect, or the reading was not complete.
    Unknown { reason: String },
}

impl Outcome {
    /// The name stored in the database and used as a metric label.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Rejected { .. } => "rejected",
            Self::NotExecuted { .. } => "not_executed",
            Self::Found { .. } => "found",
            Self::Absent => "absent",
            Self::Unknown { .. } => "unknown",
        }
    }
}
