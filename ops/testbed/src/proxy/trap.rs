//! Traps: act on one connection at the nth occurrence of some bytes.
//!
//! Steps: armed (counting), matched (only for answers: the request passed, its answer has not come), sprung, and over (released or cut).
//! Occurrences are counted over all connections of the proxy; a trap springs once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Direction;
use crate::error::Error;
use crate::runtime;

/// Bounds a test whose request never comes; far above what any request of ours takes.
const SPRING_DEADLINE: Duration = Duration::from_secs(30);

/// Which bytes a trap waits for.
#[derive(Debug, Clone)]
pub struct When {
    pub(super) direction: Direction,
    pub(super) needle: Vec<u8>,
    nth: usize,
    answer: bool,
}

impl When {
    /// A request that contains `needle`.
    pub fn to_server(needle: impl AsRef<[u8]>) -> When {
        When { direction: Direction::ToServer, needle: needle.as_ref().to_vec(), nth: 1, answer: false }
    }

    /// An answer that contains `needle`.
    pub fn to_client(needle: impl AsRef<[u8]>) -> When {
        When { direction: Direction::ToClient, ..When::to_server(needle) }
    }

    /// What the server sends next after a request that contains `needle`; the request itself passes, so the server has acted.
    pub fn answer_to(needle: impl AsRef<[u8]>) -> When {
        When { answer: true, ..When::to_server(needle) }
    }

    /// Lets the first `nth - 1` occurrences pass.
    #[must_use]
    pub fn nth(self, nth: usize) -> When {
        When { nth: nth.max(1), ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Hold,
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Armed { left: usize },
    Matched,
    Sprung,
    Released,
    Cut,
}

/// The connection is to be closed, both ways.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed;

/// What a match asks of the pump that found it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    SpringNow,
    SpringOnAnswer,
}

#[derive(Debug)]
pub(super) struct Trap {
    pub(super) when: When,
    action: Action,
    step: watch::Sender<Step>,
}

impl Trap {
    pub(super) fn new(when: When, action: Action) -> Trap {
        let step = watch::Sender::new(Step::Armed { left: when.nth });
        Trap { when, action, step }
    }

    pub(super) fn is_armed(&self) -> bool {
        matches!(*self.step.borrow(), Step::Armed { .. })
    }

    /// Counts occurrences; exactly one caller is told to spring it.
    pub(super) fn count(&self, occurrences: usize) -> Found {
        let mut found = Found::Nothing;
        self.step.send_if_modified(|step| {
            let Step::Armed { left } = step else { return false };
            *left = left.saturating_sub(occurrences);
            if *left > 0 {
                return false;
            }
            (*step, found) = if self.when.answer {
                (Step::Matched, Found::SpringOnAnswer)
            } else {
                (Step::Sprung, Found::SpringNow)
            };
            true
        });
        found
    }

    /// Acts on the connection: returns when its bytes may pass, or `Closed`.
    pub(super) async fn spring(&self) -> Result<(), Closed> {
        let over = |step: &Step| matches!(step, Step::Released | Step::Cut);
        let mut step = self.step.subscribe();
        self.step.send_if_modified(|step| {
            let matched = *step == Step::Matched;
            if matched {
                *step = Step::Sprung;
            }
            matched
        });
        if self.action == Action::Cut && !over(&step.borrow_and_update()) {
            return Err(Closed);
        }
        // The sender lives as long as `self`.
        match step.wait_for(over).await.as_deref() {
            Ok(Step::Cut) => Err(Closed),
            _ => Ok(()),
        }
    }

    fn finish(&self, step: Step) {
        self.step.send_if_modified(|now| {
            let open = !matches!(now, Step::Released | Step::Cut);
            if open {
                *now = step;
            }
            open
        });
    }

    async fn sprung(&self) -> Result<(), Error> {
        let mut step = self.step.subscribe();
        let sprung = step.wait_for(|step| matches!(step, Step::Sprung));
        match runtime::timeout(SPRING_DEADLINE, sprung).await {
            Some(Ok(_)) => Ok(()),
            _ => Err(Error::TimedOut {
                what: format!("the proxy to see {:?}", String::from_utf8_lossy(&self.when.needle)),
                after: SPRING_DEADLINE,
                context: String::new(),
            }),
        }
    }
}

/// A set trap that holds a connection. Dropped, it releases what it holds and catches nothing any more.
#[derive(Debug)]
#[must_use = "a dropped trap catches nothing"]
pub struct Hold(Arc<Trap>);

impl Hold {
    pub(super) fn new(trap: Arc<Trap>) -> Hold {
        Hold(trap)
    }

    /// Awaits the moment from which the bytes are held.
    pub async fn held(&self) -> Result<(), Error> {
        self.0.sprung().await
    }

    /// Lets the held bytes, and all after them, pass.
    pub fn release(&self) {
        self.0.finish(Step::Released);
    }

    /// Closes the connection; the held bytes are lost.
    pub fn cut(&self) {
        self.0.finish(Step::Cut);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.release();
    }
}

/// A set trap that closes a connection. Dropped, it catches nothing any more.
#[derive(Debug)]
#[must_use = "a dropped trap catches nothing"]
pub struct Cut(Arc<Trap>);

impl Cut {
    pub(super) fn new(trap: Arc<Trap>) -> Cut {
        Cut(trap)
    }

    /// Awaits the cut.
    pub async fn done(&self) -> Result<(), Error> {
        self.0.sprung().await
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.0.finish(Step::Released);
    }
}
