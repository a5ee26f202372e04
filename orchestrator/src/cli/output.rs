//! stdout for data, stderr for talk.

use super::exit::{Exit, Failure};
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// Writes data. A reader that went away (`| head -1`) has all it wanted: the command ends, and quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure { exit: Exit::Done, message: None },
        _ => Failure::failed(format!("stdout can not be written: {error}")),
    })
}

/// Writes one JSON document on one line.
pub(crate) fn print_json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let text =
        serde_json::to_string(value).map_err(|error| Failure::failed(format!("the result is no JSON: {error}")))?;
    print(&format!("{text}\n"))
}

/// Says something to the person; if nobody listens, nothing is lost.
pub(crate) fn say(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}
