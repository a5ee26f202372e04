//! When, where, and doing it. Rules live in `jobs`; the loops here carry their plans out and keep no rules of their own.

pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod lease;
pub mod metrics;
pub mod node;
pub mod psp;
pub mod randomness;
pub mod store;
pub mod work;

/// An error with the chain of its causes, for the one place that logs it.
#[must_use]
pub fn report(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
