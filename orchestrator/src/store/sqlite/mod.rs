//! SQLite.

pub mod leases;
