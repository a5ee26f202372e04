//! The rules of the refund machine as tables: facts in, plan or decision out, both as short texts.
//!
//! A decision reads `state action@seconds rung effect !break (reason)`, what is empty left out; see `build`.

mod build;
mod histories;
mod inbox;
mod model;
mod plan;
mod resend;
mod settle;
