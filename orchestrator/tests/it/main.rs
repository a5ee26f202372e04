//! All integration tests of the orchestrator, in one binary because linking is what costs here.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod postgres_connections;
mod postgres_database;
mod sql_prompt_postgres;
mod sql_prompt_sqlite;
mod store_memory;
mod store_model;
mod store_postgres;
mod store_sqlite;
mod store_suite;
