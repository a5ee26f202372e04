//! All integration tests of the orchestrator, in one binary because linking is what costs here.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod api;
mod cli;
mod config;
mod provider_suite;
mod story;
