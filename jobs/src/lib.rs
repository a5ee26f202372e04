//! What to do: the pure rules of refunds and of money.
//!
//! Nothing here reads a clock, draws a random number, logs, or touches a network or a database. Every function takes what it
//! needs as arguments and returns a plan, a step or a typed error; `orchestrator` carries it out. That is what makes the rules
//! testable as tables and lets simulation run the same code as production.

pub mod ids;
pub mod money;
pub mod refund;
