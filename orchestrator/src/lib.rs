//! When, where, and doing it. Rules live in `jobs`; the loops here carry their plans out and keep no rules of their own.

pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod lease;
pub mod metrics;
pub mod node;
pub mod psp;
pub mod store;
