//! One child process that cannot outlive the test process.
//!
//! The child runs under `supervisor.sh`, whose standard input is a pipe of ours: when the pipe closes, the supervisor asks the child with
//! a signal, then kills it. Dropping a [`Supervised`] closes the pipe and waits until the child is gone.
//!
//! The process id is the child's own (it is printed before the command replaces the shell), so signals reach it and nobody else.

use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::clock::wait;
use crate::error::Error;

const SCRIPT: &str = include_str!("supervisor.sh");
/// The supervisor gives its child 5 s to follow the first signal; past this it would be stuck in the kernel.
const END_DEADLINE: Duration = Duration::from_secs(15);
/// Shells report a death by signal as 128 plus its number.
const SIGNAL_BASE: i32 = 128;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    pub fn success(self) -> bool {
        self == Exit::Code(0)
    }

    fn from_supervisor(status: ExitStatus) -> Exit {
        match status.code() {
            Some(code) if code > SIGNAL_BASE => Exit::Signal(code - SIGNAL_BASE),
            Some(code) => Exit::Code(code),
            // The supervisor itself was killed; its child may be gone or not.
            None => Exit::Signal(9),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(formatter, "exit code {code}"),
            Exit::Signal(signal) => write!(formatter, "signal {signal}"),
        }
    }
}

/// Whether a process of this id exists (a zombie counts).
pub fn is_running(pid: u32) -> bool {
    process_id(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

fn process_id(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// What to run: the command's words, its surroundings, and the signal that asks it to end.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) name: &'a str,
    pub(crate) words: &'a [String],
    pub(crate) environment: &'a [(String, String)],
    pub(crate) folder: Option<&'a Path>,
    pub(crate) ask_with: &'a str,
    pub(crate) stderr: Stdio,
}

#[derive(Debug)]
pub(crate) struct Supervised {
    name: String,
    supervisor: Child,
    stdout: Option<ChildStdout>,
    pid: u32,
    exit: Option<Exit>,
}

impl Supervised {
    pub(crate) fn start(order: Order<'_>) -> Result<Supervised, Error> {
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "testbed-supervisor", order.ask_with])
            .args(order.words)
            .envs(order.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(order.stderr)
            // Ctrl-C ends the test process first; the supervisor sees the pipe close.
            .process_group(0);
        if let Some(folder) = order.folder {
            command.current_dir(folder);
        }
        let mut supervisor = command.spawn().map_err(Error::io(format!("start {}", order.name)))?;
        let stdout = supervisor.stdout.take();
        let mut supervised = Supervised { name: order.name.to_owned(), supervisor, stdout, pid: 0, exit: None };
        supervised.pid = supervised.read_pid()?;
        Ok(supervised)
    }

    /// Reads the first line and not a byte more: the rest belongs to the reader of the output.
    fn read_pid(&mut self) -> Result<u32, Error> {
        let failed = || Error::io(format!("read the process id of {}", self.name));
        let mut line = String::new();
        let mut byte = [0; 1];
        while let Some(stdout) = &mut self.stdout {
            let count = stdout.read(&mut byte).map_err(failed())?;
            if count == 0 || byte[0] == b'\n' {
                break;
            }
            line.push(char::from(byte[0]));
        }
        line.parse().map_err(|_| failed()(std::io::Error::other(format!("the supervisor said {line:?}"))))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn take_output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.stdout.take(), self.supervisor.stderr.take())
    }

    /// How it ended, or None while it runs.
    pub(crate) fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            let status = self.supervisor.try_wait().ok().flatten();
            self.exit = status.map(Exit::from_supervisor);
        }
        self.exit
    }

    /// Sends a signal unless it has ended; the id cannot have gone to somebody else before the supervisor has reported the end.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        let Some(pid) = process_id(self.pid).filter(|_| self.exit().is_none()) else { return Ok(()) };
        match rustix::process::kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(Error::io(format!("signal {}", self.name))(errno.into())),
        }
    }

    pub(crate) fn wait_exit(&mut self, after: Duration) -> Result<Exit, Error> {
        let what = format!("{} (pid {}) to end", self.name, self.pid);
        wait(&what, after, || self.exit())
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        // A child stuck in the kernel is left to the supervisor; a destructor has nobody to tell.
        self.wait_exit(END_DEADLINE).ok();
    }
}
