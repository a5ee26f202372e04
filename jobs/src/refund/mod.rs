//! The refund machine: its states, what calls tell, and what to do next.

pub mod capabilities;
pub mod intent;
pub mod key;
pub mod outcome;
pub mod state;
