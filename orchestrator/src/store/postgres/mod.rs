//! PostgreSQL.

pub mod leases;
