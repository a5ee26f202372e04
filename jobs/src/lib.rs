//! The pure rules.
