//! The output of a process, read line by line as it comes.

use std::collections::VecDeque;
use std::process::{ChildStderr, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::watch;

use crate::error::Error;
use crate::runtime::runtime;

/// Lines shown in an error: a start-up and its complaint.
pub(super) const SHOWN: usize = 30;
/// Lines kept of one process; a drill that logs more is read from its own log file.
const KEPT: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Default)]
struct Kept {
    /// Number of lines that were dropped from the front.
    dropped: usize,
    lines: VecDeque<(Stream, String)>,
    /// Streams that may still bring lines.
    open: usize,
}

type SharedKept = Arc<Mutex<Kept>>;

/// A reader's view; the readers themselves run on the testbed's runtime until the pipes close.
#[derive(Debug)]
pub(super) struct Lines {
    kept: SharedKept,
    changes: watch::Receiver<()>,
}

impl Lines {
    pub(super) fn read(streams: (Option<ChildStdout>, Option<ChildStderr>)) -> Result<Lines, Error> {
        let (changed, changes) = watch::channel(());
        let kept = SharedKept::default();
        let _entered = runtime().enter();
        let failed = || Error::io("read the output of a process");
        if let Some(stdout) = streams.0 {
            let stdout = tokio::process::ChildStdout::from_std(stdout).map_err(failed())?;
            start_reader(Stream::Stdout, stdout, &kept, changed.clone());
        }
        if let Some(stderr) = streams.1 {
            let stderr = tokio::process::ChildStderr::from_std(stderr).map_err(failed())?;
            start_reader(Stream::Stderr, stderr, &kept, changed);
        }
        Ok(Lines { kept, changes })
    }

    /// The first line that matches, or None when the output ended without one.
    pub(super) async fn find(&self, matches: impl Fn(&str) -> bool) -> Option<String> {
        let mut changes = self.changes.clone();
        let mut seen = 0;
        loop {
            changes.mark_unchanged();
            {
                let kept = lock(&self.kept);
                let fresh = kept.lines.iter().skip(seen.max(kept.dropped) - kept.dropped);
                if let Some((_, line)) = fresh.into_iter().find(|(_, line)| matches(line)) {
                    return Some(line.clone());
                }
                if kept.open == 0 {
                    return None;
                }
                seen = kept.dropped + kept.lines.len();
            }
            // An error means that the readers ended; the next look sees it.
            changes.changed().await.ok();
        }
    }

    /// Awaits the end of both streams.
    pub(super) async fn closed(&self) {
        self.find(|_| false).await;
    }

    pub(super) fn last(&self, count: usize) -> String {
        let kept = lock(&self.kept);
        let skipped = kept.lines.len().saturating_sub(count);
        kept.lines.iter().skip(skipped).map(|(_, line)| format!("{line}\n")).collect()
    }

    pub(super) fn text(&self, stream: Stream) -> String {
        let kept = lock(&self.kept);
        kept.lines.iter().filter(|(from, _)| *from == stream).map(|(_, line)| format!("{line}\n")).collect()
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start_reader(
    stream: Stream,
    pipe: impl AsyncRead + Unpin + Send + 'static,
    kept: &SharedKept,
    changed: watch::Sender<()>,
) {
    let kept = Arc::clone(kept);
    lock(&kept).open += 1;
    runtime().spawn(async move {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).await.is_ok_and(|count| count > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
            bytes.clear();
            {
                let mut kept = lock(&kept);
                kept.lines.push_back((stream, line));
                if kept.lines.len() > KEPT {
                    kept.lines.pop_front();
                    kept.dropped += 1;
                }
            }
            changed.send_replace(());
        }
        lock(&kept).open -= 1;
        changed.send_replace(());
    });
}
