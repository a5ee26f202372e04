//! What the server does with one call: the effects of its fault, added up.

use super::{Effect, Executes, How};
use crate::wire::ApiError;
use std::time::Duration;

/// Waits beyond this are cut, so that a slip in a script cannot hold a connection for years.
const WAIT_LONGEST: Duration = Duration::from_secs(60 * 60);

/// One call's course.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) latency: Duration,
    pub(crate) executes: Executes,
    /// The call does not execute.
    pub(crate) instead: Option<Instead>,
    /// The call executes after this many milliseconds and its caller is not told.
    pub(crate) executes_late_ms: Option<(i64, How)>,
    pub(crate) script: Script,
    pub(crate) fate: Fate,
}

/// What the caller gets of a call that does not execute.
#[derive(Clone, Debug)]
pub(crate) enum Instead {
    Error { status: u16, stored: bool },
    RateLimited { retry_after_s: Option<u64> },
    NoAnswer(How),
}

/// What becomes of the answer to a call that executed.
#[derive(Clone, Debug, Default)]
pub(crate) enum Fate {
    #[default]
    Whole,
    NoAnswer(How),
    Truncated(Option<u32>),
    Error {
        status: u16,
        stored: bool,
    },
}

/// A later change of a refund's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Succeed,
    Fail { reason: String },
}

/// The status a refund is created with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    #[default]
    Succeeded,
    Pending {
        reason: Option<&'static str>,
    },
    RequiresAction,
}

/// How a refund comes out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) refuse: Option<ApiError>,
    pub(crate) start: Start,
    /// Changes to come, each after so many milliseconds.
    pub(crate) changes: Vec<(i64, Change)>,
    pub(crate) list_lag_ms: i64,
    pub(crate) other_amount: Option<i64>,
    pub(crate) other_currency: Option<String>,
    pub(crate) answer_only: bool,
}

impl Plan {
    pub(crate) fn new(latency: Duration, executes: Executes) -> Self {
        let (instead, executes_late_ms, script, fate) = (None, None, Script::default(), Fate::Whole);
        Self { latency, executes, instead, executes_late_ms, script, fate }
    }

    pub(crate) fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::Latency { ms, executes } => {
                self.latency = Duration::from_millis(*ms).min(WAIT_LONGEST);
                self.executes = *executes;
            }
            Effect::AnswerLost { how } => self.fate = Fate::NoAnswer(*how),
            Effect::Dropped { how } => self.instead = Some(Instead::NoAnswer(*how)),
            Effect::ExecutesLate { after_ms, how } => self.executes_late_ms = Some((signed(*after_ms), *how)),
            Effect::ErrorExecuted { status, stored } => self.fate = Fate::Error { status: *status, stored: *stored },
            Effect::ErrorNotExecuted { status, stored } => {
                self.instead = Some(Instead::Error { status: *status, stored: *stored });
            }
            Effect::RateLimited { retry_after_s } => {
                self.instead = Some(Instead::RateLimited { retry_after_s: *retry_after_s });
            }
            Effect::Reset { executed: true } => self.fate = Fate::NoAnswer(How::Reset),
            Effect::Reset { executed: false } => self.instead = Some(Instead::NoAnswer(How::Reset)),
            Effect::Truncated { bytes } => self.fate = Fate::Truncated(*bytes),
            on_refund => self.script.add(on_refund),
        }
    }
}

impl Script {
    fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::ListLag { ms } => self.list_lag_ms = signed(*ms),
            Effect::LateSuccess { after_ms } => {
                self.start = Start::Pending { reason: None };
                self.changes.push((signed(*after_ms), Change::Succeed));
            }
            Effect::FailsLater { after_ms, reason } => {
                self.changes.push((signed(*after_ms), Change::Fail { reason: reason.clone() }));
            }
            Effect::InsufficientFunds { succeeds_after_ms, fails_after_ms } => {
                self.start = Start::Pending { reason: Some("insufficient_funds") };
                if let Some(ms) = succeeds_after_ms {
                    self.changes.push((signed(*ms), Change::Succeed));
                }
                if let Some(ms) = fails_after_ms {
                    self.changes.push((signed(*ms), Change::Fail { reason: "insufficient_funds".to_owned() }));
                }
            }
            Effect::RequiresAction { succeeds_after_ms } => {
                self.start = Start::RequiresAction;
                if let Some(ms) = succeeds_after_ms {
                    self.changes.push((signed(*ms), Change::Succeed));
                }
            }
            Effect::Refuse { code, status, message, param } => {
                let message = message.clone().unwrap_or_else(|| format!("The refund was refused: {code}."));
                let error = ApiError::refused(*status, code.clone(), message);
                self.refuse = Some(if let Some(param) = param { error.on(param.clone()) } else { error });
            }
            Effect::WrongAnswer { amount, currency, answer_only } => {
                self.other_amount = *amount;
                self.other_currency.clone_from(currency);
                self.answer_only = *answer_only;
            }
            _ => {}
        }
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}
