//! The API by real HTTP, against the store in memory: status, code, effect.

mod actions;
mod reading;
mod server;
mod submitting;
mod surroundings;

pub(crate) use server::{Holder, Reply, Server};
