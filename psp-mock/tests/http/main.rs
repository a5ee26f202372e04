//! The mock's behaviour as a caller sees it, by HTTP, in tables.

mod admin;
mod faults;
mod keys;
mod lists;
mod process;
mod refunds;
mod settlement;
mod support;
mod webhooks;
