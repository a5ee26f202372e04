//! Orchestrator.
