//! The register of lease service generations. Only ever appended to; the highest epoch is the current one.

use super::tables::{Tables, next_id};
use chrono::{DateTime, Utc};

/// A generation to register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewEpoch<'a> {
    /// `memory`, `sql` or `etcd`.
    pub backend: &'a str,
    /// What tells this generation of the service from any other.
    pub generation: &'a str,
    pub highest_revision: i64,
    pub registered_by: &'a str,
}

/// One row of `lease_epochs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    pub epoch: i64,
    pub backend: String,
    pub generation: String,
    pub highest_revision: i64,
    pub registered_by: String,
    pub registered_at: DateTime<Utc>,
}

impl Tables {
    pub(super) fn current_epoch(&self) -> i64 {
        self.epochs.last().map_or(0, |last| last.epoch)
    }

    pub(super) fn register_epoch(&mut self, new: &NewEpoch<'_>, now: DateTime<Utc>) -> i64 {
        let epoch = next_id(&mut self.current_epoch());
        self.epochs.push(Epoch {
            epoch,
            backend: new.backend.to_owned(),
            generation: new.generation.to_owned(),
            highest_revision: new.highest_revision,
            registered_by: new.registered_by.to_owned(),
            registered_at: now,
        });
        epoch
    }

    pub(super) fn raise_revision_mark(&mut self, revision: i64) {
        if let Some(current) = self.epochs.last_mut() {
            current.highest_revision = current.highest_revision.max(revision);
        }
    }
}
