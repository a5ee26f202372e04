//! What an error of the driver means: for the caller, for the connection, and for whether the transaction may be run again.

use crate::store::StoreError;
use sqlx::Error;

/// Why the body of a call stopped.
#[derive(Debug)]
pub(super) enum Failure {
    Sql(Error),
    /// Found by our own code; the connection is fine.
    Store(StoreError),
    /// Someone else was faster in a way that makes what was decided wrong: undo everything and decide again.
    Again(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What is left of the connection after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aftermath {
    /// The server refused a statement and goes on.
    Usable,
    /// Usable, and the transaction is undone to let others go on: running it again is not a repeat.
    Undone,
    /// Broken, or to a server that can not write: close it.
    Broken,
}

impl Failure {
    pub(super) fn aftermath(&self) -> Aftermath {
        match self {
            Self::Store(_) => Aftermath::Usable,
            Self::Again(_) => Aftermath::Undone,
            Self::Sql(Error::Database(error)) => {
                error.code().map_or(Aftermath::Usable, |code| database_aftermath(&code))
            }
            Self::Sql(
                Error::ColumnDecode { .. }
                | Error::Decode(_)
                | Error::RowNotFound
                | Error::ColumnIndexOutOfBounds { .. },
            ) => Aftermath::Usable,
            Self::Sql(_) => Aftermath::Broken,
        }
    }

    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Sql(error) => to_store_error(error),
            Self::Store(error) => error,
            Self::Again(why) => StoreError::Unavailable(why.to_owned()),
        }
    }
}

/// By SQLSTATE.
fn database_aftermath(code: &str) -> Aftermath {
    match code {
        // Serialization failure, deadlock.
        "40001" | "40P01" => Aftermath::Undone,
        // Read-only transaction (a standby), idle-in-transaction and idle-session timeouts.
        "25006" | "25P03" | "57P05" => Aftermath::Broken,
        // Administrator, crash, still starting, database gone.
        "57P01" | "57P02" | "57P03" | "57P04" => Aftermath::Broken,
        code if code.starts_with("08") => Aftermath::Broken,
        _ => Aftermath::Usable,
    }
}

/// True when the server could not do it now, as opposed to would never.
fn is_passing(code: &str) -> bool {
    // Query canceled by timeout, lock timeout, recovery, then: insufficient resources, operator intervention, system error.
    matches!(code, "57014" | "55P03" | "55000")
        || ["53", "57", "58"].iter().any(|class| code.starts_with(class))
        || database_aftermath(code) != Aftermath::Usable
}

pub(super) fn to_store_error(error: Error) -> StoreError {
    match error {
        Error::Database(database) => {
            let text = match database.constraint() {
                Some(constraint) => format!("{} [{constraint}]", database.message()),
                None => database.message().to_owned(),
            };
            if database.code().is_some_and(|code| is_passing(&code)) {
                StoreError::Unavailable(text)
            } else {
                StoreError::Refused(text)
            }
        }
        Error::ColumnDecode { .. }
        | Error::Decode(_)
        | Error::ColumnIndexOutOfBounds { .. }
        | Error::ColumnNotFound(_) => StoreError::Unreadable(error.to_string()),
        Error::RowNotFound => StoreError::Unreadable("a row that must be there is missing".to_owned()),
        other => StoreError::Unavailable(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_can_not_write_loses_its_connection_and_a_deadlock_does_not() {
        let check = |code: &str, aftermath: Aftermath, passing: bool| {
            assert_eq!((database_aftermath(code), is_passing(code)), (aftermath, passing), "{code}");
        };
        check("25006", Aftermath::Broken, true);
        check("57P01", Aftermath::Broken, true);
        check("08006", Aftermath::Broken, true);
        check("40P01", Aftermath::Undone, true);
        check("57014", Aftermath::Usable, true);
        check("55P03", Aftermath::Usable, true);
        check("53100", Aftermath::Usable, true);
        check("RF001", Aftermath::Usable, false);
        check("23505", Aftermath::Usable, false);
    }
}
