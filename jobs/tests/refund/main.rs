//! The rules of the refund machine as tables: facts in, plan or decision out, both as short texts.
//!
//! A decision reads `state action@seconds rung effect !break (reason)`, what is empty left out; see `build`.

#![expect(clippy::unwrap_used, reason = "a test's own data is right, or the test fails")]

mod build;
mod histories;
mod inbox;
mod model;
mod plan;
mod resend;
mod settle;
mod world;
