//! What can go wrong while a private server is started, awaited or ended; named by the operation that failed.

use std::path::PathBuf;
use std::time::Duration;

use crate::supervisor::Exit;

/// Failure of one testbed operation. Texts carry what a person needs to act: what to install, the last lines of the log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that the operating system should bring is not there.
    #[error("{what} is missing: install it with `{install}`")]
    Missing { what: &'static str, install: &'static str },
    /// A program of ours is not where the caller said.
    #[error("no program at {path:?}: build it first")]
    NoProgram { path: PathBuf },
    /// A call to the operating system failed.
    #[error("could not {doing}")]
    Io {
        doing: String,
        #[source]
        source: std::io::Error,
    },
    /// A helper command ended with another code than 0.
    #[error("{command} failed ({code:?}):\n{output}")]
    Command { command: &'static str, code: Option<i32>, output: String },
    /// An awaited event did not come.
    #[error("waited {after:?} for {what}\n{context}")]
    TimedOut { what: String, after: Duration, context: String },
    /// A process ended while something else was awaited from it.
    #[error("{what} ended ({exit}), last lines:\n{last_lines}")]
    Ended { what: String, exit: Exit, last_lines: String },
}

impl Error {
    /// For `map_err`: an error of the operating system with what was being done.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }
}
