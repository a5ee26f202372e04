//! Our programs as real processes: started, watched line by line, paused, killed.
//!
//! A [`Program`] says what to run; a [`Process`] is one running copy. It ends with SIGKILL when dropped or when the test process is gone,
//! also while it is paused. Its output is kept line by line (the newest lines, bounded) and shown in the error of every wait that fails.
//!
//! Left out: input (a started process reads an empty file) and grandchildren.

mod lines;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::clock::{Deadline, POLL_INTERVAL};
use crate::error::Error;
use crate::runtime;
use crate::supervisor::{Exit, Order, Supervised};
use lines::{Lines, Stream};

/// Output can trail the end of a process only while a grandchild holds the pipe.
const TRAILING_OUTPUT: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

impl Program {
    /// A program by its path, such as `env!("CARGO_BIN_EXE_orchestrator")`.
    pub fn new(path: impl AsRef<Path>) -> Program {
        let path = path.as_ref().to_owned();
        Program { path, arguments: Vec::new(), environment: Vec::new(), folder: None }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<str>>(mut self, arguments: impl IntoIterator<Item = A>) -> Program {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable on top of the test's own.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<str>) -> Program {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs it in this folder.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Program {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Starts it.
    pub fn spawn(&self) -> Result<Process, Error> {
        if !self.path.is_file() {
            return Err(Error::NoProgram { path: self.path.clone() });
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut words = vec![self.path.to_string_lossy().into_owned()];
        words.extend(self.arguments.iter().cloned());
        let mut supervised = Supervised::start(Order {
            name: &name,
            words: &words,
            environment: &self.environment,
            folder: self.folder.as_deref(),
            ask_with: "KILL",
            stderr: Stdio::piped(),
        })?;
        let pid = supervised.pid();
        let lines = Lines::read(supervised.take_output())?;
        Ok(Process { name, pid, lines, supervised: Mutex::new(supervised) })
    }

    /// Starts it and awaits its end: for commands.
    pub async fn run(&self, after: Duration) -> Result<Finished, Error> {
        let process = self.spawn()?;
        let exit = process.wait_exit(after).await?;
        Ok(Finished { exit, stdout: process.lines.text(Stream::Stdout), stderr: process.lines.text(Stream::Stderr) })
    }
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub exit: Exit,
    pub stdout: String,
    pub stderr: String,
}

/// One running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    lines: Lines,
    supervised: Mutex<Supervised>,
}

impl Process {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Everything it printed on both streams so far, in the order read.
    pub fn output(&self) -> String {
        self.lines.last(usize::MAX)
    }

    /// Awaits the first line on either stream that `matches`, among those printed already as well.
    pub async fn wait_line(&self, after: Duration, matches: impl Fn(&str) -> bool) -> Result<String, Error> {
        match runtime::timeout(after, self.lines.find(matches)).await {
            Some(Some(line)) => Ok(line),
            Some(None) => {
                let exit = self.wait_exit(after).await?;
                Err(Error::Ended { what: self.name.clone(), exit, last_lines: self.lines.last(lines::SHOWN) })
            }
            None => Err(self.timed_out("a line", after)),
        }
    }

    /// Awaits its end and the end of its output.
    pub async fn wait_exit(&self, after: Duration) -> Result<Exit, Error> {
        let deadline = Deadline::after(after);
        loop {
            if let Some(exit) = self.exit() {
                runtime::timeout(TRAILING_OUTPUT, self.lines.closed()).await;
                return Ok(exit);
            }
            if deadline.passed() {
                return Err(self.timed_out("the end", after));
            }
            runtime::sleep(POLL_INTERVAL).await;
        }
    }

    /// How it ended, or None while it runs.
    pub fn exit(&self) -> Option<Exit> {
        self.supervised().exit()
    }

    /// SIGSTOP: it stands still while the world goes on.
    pub fn pause(&self) -> Result<(), Error> {
        self.supervised().signal(Signal::STOP)
    }

    /// SIGCONT.
    pub fn resume(&self) -> Result<(), Error> {
        self.supervised().signal(Signal::CONT)
    }

    /// SIGKILL; await the end with [`Process::wait_exit`].
    pub fn kill(&self) -> Result<(), Error> {
        self.supervised().signal(Signal::KILL)
    }

    /// SIGTERM: asks it to shut down.
    pub fn terminate(&self) -> Result<(), Error> {
        self.supervised().signal(Signal::TERM)
    }

    fn supervised(&self) -> MutexGuard<'_, Supervised> {
        self.supervised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timed_out(&self, event: &str, after: Duration) -> Error {
        let what = format!("{event} of {} (pid {}), last lines:", self.name, self.pid);
        Error::TimedOut { what, after, context: self.lines.last(lines::SHOWN) }
    }
}
