//! The refund machine: its states, what calls tell, and what to do next.

pub mod capabilities;
pub mod decision;
pub mod facts;
pub mod inbox;
pub mod intent;
pub mod key;
pub mod outcome;
pub mod plan;
pub mod resend;
pub mod settle;
pub mod state;
