//! The register of lease services in the database, and what a service that was met there means: rules without IO.
//!
//! Tokens are only comparable when they come from one generation of one service. The register's highest epoch is the current one. A
//! service that the register does not know must not hand out tokens: only an empty register over a database without any fence fills
//! itself, and only PostgreSQL's own generation, its timeline, raises the epoch by itself. Everything else waits for people.

use super::LeaseError;

/// The current row of the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub epoch: i64,
    pub backend: String,
    pub generation: String,
}

/// The service a replica is about to open a session at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'a> {
    pub backend: &'static str,
    pub generation: &'a str,
    /// Whether this is the generation that is registered, if one is.
    pub is_registered_one: bool,
    /// Whether a new generation may raise the epoch by itself.
    pub may_raise: bool,
}

/// What to do before the session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    Current {
        epoch: i64,
    },
    /// Register the first generation.
    Fill {
        epoch: i64,
    },
    /// Register a new generation, on record; all sessions end.
    Raise {
        epoch: i64,
    },
}

/// Judges a service by the register. `any_fence`: whether some row has accepted a token already.
pub fn judge(registered: Option<&Registered>, any_fence: bool, found: &Found<'_>) -> Result<Registration, LeaseError> {
    let here = format!("`{}` ({})", found.backend, found.generation);
    let Some(registered) = registered else {
        if any_fence {
            return Err(LeaseError::WrongGeneration(format!(
                "no lease service is registered but rows carry fences; this replica uses {here}: raise the epoch"
            )));
        }
        return Ok(Registration::Fill { epoch: 1 });
    };
    if registered.backend == found.backend && found.is_registered_one {
        return Ok(Registration::Current { epoch: registered.epoch });
    }
    if registered.backend == found.backend && found.may_raise {
        return Ok(Registration::Raise { epoch: registered.epoch + 1 });
    }
    let Registered { epoch, backend, generation } = registered;
    Err(LeaseError::WrongGeneration(format!(
        "epoch {epoch} belongs to lease service `{backend}` ({generation}); this replica uses {here}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        backend: Option<&str>,
        any_fence: bool,
        same: bool,
        may_raise: bool,
        expected: Result<Registration, &str>,
    ) {
        let registered =
            backend.map(|backend| Registered { epoch: 4, backend: backend.to_owned(), generation: "old".to_owned() });
        let found = Found { backend: "sql", generation: "new", is_registered_one: same, may_raise };
        let verdict = judge(registered.as_ref(), any_fence, &found).map_err(|error| error.to_string());
        match (&expected, &verdict) {
            (Ok(expected), Ok(verdict)) if expected == verdict => {}
            (Err(expected), Err(verdict)) if expected == verdict => {}
            _ => panic!("expected {expected:?}, found {verdict:?}"),
        }
    }

    #[test]
    fn only_an_empty_register_without_fences_fills_itself_and_errors_name_both_services() {
        check(None, false, false, false, Ok(Registration::Fill { epoch: 1 }));
        check(
            None,
            true,
            false,
            true,
            Err("no lease service is registered but rows carry fences; this replica uses `sql` (new): raise the epoch"),
        );
        check(Some("sql"), true, true, true, Ok(Registration::Current { epoch: 4 }));
        check(Some("sql"), true, false, true, Ok(Registration::Raise { epoch: 5 }));
        check(
            Some("sql"),
            true,
            false,
            false,
            Err("epoch 4 belongs to lease service `sql` (old); this replica uses `sql` (new)"),
        );
        for same in [true, false] {
            check(
                Some("etcd"),
                true,
                same,
                true,
                Err("epoch 4 belongs to lease service `etcd` (old); this replica uses `sql` (new)"),
            );
        }
    }
}
