//! All integration tests of the orchestrator, in one binary because linking is what costs here.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod api;
mod cli;
mod config;
mod faults_cases;
mod faults_resend;
mod faults_shutdown;
mod faults_site;
mod faults_steps;
mod faults_steps_postgres;
mod faults_steps_sqlite;
mod faults_storms;
mod flow_memory;
mod lease_keeper;
mod lease_memory;
mod lease_postgres;
mod lease_sqlite;
mod lease_suite;
mod postgres_connections;
mod postgres_database;
mod provider_suite;
mod sql_prompt_postgres;
mod sql_prompt_sqlite;
mod store_memory;
mod store_model;
mod store_postgres;
mod store_sqlite;
mod store_suite;
mod story;
