//! From nothing to a server that accepts connections.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

use super::{Place, START_DEADLINE};
use crate::clock::wait;
use crate::error::Error;
use crate::supervisor::Supervised;

/// Line of `postmaster.pid` in which the postmaster writes its state, as pg_ctl reads it.
const STATE_LINE: usize = 7;
const LAST_LINES: usize = 20;

/// Runs initdb. Without sync: nothing is lost that a crash of the machine would not take with the folder.
pub(super) fn init_cluster(place: &Place) -> Result<(), Error> {
    place.user.own(place.folder.path())?;
    let words = place.user.command(&place.binaries.join("initdb"));
    let answer = Command::new(&words[0])
        .args(&words[1..])
        .arg("-D")
        .arg(place.folder.join("data"))
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"])
        .current_dir(place.folder.path())
        .output()
        .map_err(Error::io("run initdb"))?;
    if answer.status.success() {
        return Ok(());
    }
    let output = [answer.stdout, answer.stderr].concat();
    let output = String::from_utf8_lossy(&output).into_owned();
    Err(Error::Command { command: "initdb", code: answer.status.code(), output })
}

/// Waits until this very postmaster says that it is ready and its port answers. Asking the port alone is not enough: when another server
/// took it, that one answers while ours is about to end.
pub(super) fn wait_ready(place: &Place, server: &mut Supervised, port: u16) -> Result<(), Error> {
    let state_file = place.folder.join("data").join("postmaster.pid");
    let pid = server.pid().to_string();
    let ready = || {
        let text = fs::read_to_string(&state_file).unwrap_or_default();
        let line = |number: usize| text.lines().nth(number).map(str::trim);
        line(0) == Some(pid.as_str())
            && line(STATE_LINE) == Some("ready")
            && TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    };
    let ended = wait("PostgreSQL to accept connections", START_DEADLINE, || {
        let exit = server.exit();
        (exit.is_some() || ready()).then_some(exit)
    });
    match ended {
        Ok(None) => Ok(()),
        Ok(Some(exit)) => Err(Error::Ended { what: "PostgreSQL".to_owned(), exit, last_lines: last_log_lines(place) }),
        Err(Error::TimedOut { what, after, .. }) => {
            Err(Error::TimedOut { what, after, context: last_log_lines(place) })
        }
        Err(error) => Err(error),
    }
}

pub(super) fn last_log_lines(place: &Place) -> String {
    let text = fs::read_to_string(place.folder.join("server.log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
