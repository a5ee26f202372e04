//! Keeps one session open for a replica: opens, renews, sweeps, and opens another after a loss.
//!
//! States: no session (with a reason for readiness), or one that is renewed every renewal interval by the rules in
//! [`renewal`](super::renewal). A lost session is given up for good, together with everything claimed under it; the next one has a new
//! random identity and revives no hold.
//!
//! Everything runs inside the one future [`SessionKeeper::run`] returns: dropping it stops the renewal, and trust then ends by itself.
//! Across a crash nothing is kept; what the dead session held is free after its TTL, as is a session whose opening was not answered.

use super::parameters::LeaseParameters;
use super::renewal::{Answer, Next, Renewals};
use super::session::{Session, Surroundings};
use super::upkeep;
use super::{LeaseError, Leases, Renewal};
use crate::clock::{Boottime, Clock};
use crate::metrics::Metrics;
use jobs::ids::SessionId;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The pause before another session is opened doubles from the first to the last of these, less up to half by chance.
const BACKOFF_FIRST: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Random identities for sessions, from a seed that the caller chooses.
#[derive(Debug)]
pub struct SessionIds(StdRng);

impl SessionIds {
    #[must_use]
    pub fn new(random: StdRng) -> Self {
        Self(random)
    }

    /// Seeded by the operating system.
    #[must_use]
    pub fn from_os() -> Self {
        Self(StdRng::from_os_rng())
    }

    fn next_id(&mut self) -> SessionId {
        SessionId(uuid::Builder::from_random_bytes(self.0.random()).into_uuid())
    }

    /// Between half the pause and all of it, so that replicas do not come back in step.
    fn jitter(&mut self, pause: Duration) -> Duration {
        pause / 2 + pause.mul_f64(self.0.random_range(0.0..0.5))
    }
}

/// Whether the replica may work, for readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperStatus {
    Ready,
    NotReady(String),
}

/// Sessions known to be alive, and when that was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveSessions {
    pub sessions: Vec<SessionId>,
    /// Nothing was heard yet while this is empty.
    pub refreshed_at: Option<Boottime>,
    /// Sessions that were alive once and when they were first missed, the latest last.
    ended: VecDeque<(SessionId, Boottime)>,
}

/// Ended sessions remembered, to tell how long their work waited.
const ENDED_MAX: usize = 256;

impl LiveSessions {
    fn refresh(&mut self, sessions: Vec<SessionId>, now: Boottime) {
        for missed in self.sessions.iter().filter(|known| !sessions.contains(known)) {
            if self.ended.len() == ENDED_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back((*missed, now));
        }
        self.sessions = sessions;
        self.refreshed_at = Some(now);
    }
}

#[derive(Debug)]
struct View {
    session: Option<Arc<Session>>,
    reason: String,
}

impl View {
    fn trusted(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|session| session.is_trusted())
    }
}

/// Keeps a replica's session.
#[derive(Debug)]
pub struct SessionKeeper {
    around: Surroundings,
    label: String,
    session_ids: Mutex<SessionIds>,
    view: watch::Sender<View>,
    live: Mutex<LiveSessions>,
}

impl SessionKeeper {
    /// The label (host name, process id) is for people; `parameters` are validated ones.
    #[must_use]
    pub fn new(
        leases: Arc<dyn Leases>,
        clock: Arc<dyn Clock>,
        parameters: LeaseParameters,
        label: String,
        metrics: Metrics,
        session_ids: SessionIds,
    ) -> Self {
        Self {
            around: Surroundings { leases, clock, parameters, metrics },
            label,
            session_ids: Mutex::new(session_ids),
            view: watch::Sender::new(View { session: None, reason: "no session was opened yet".to_owned() }),
            live: Mutex::new(LiveSessions::default()),
        }
    }

    /// The session to claim under, if there is a trusted one.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Session>> {
        self.view.borrow().trusted().cloned()
    }

    /// Waits until the session is another one than `seen`, and returns it. `changed(None)` waits for a session.
    pub async fn changed(&self, seen: Option<SessionId>) -> Option<Arc<Session>> {
        let mut view = self.view.subscribe();
        let differs = |view: &View| view.trusted().map(|session| session.id()) != seen;
        match view.wait_for(differs).await {
            Ok(view) => view.trusted().cloned(),
            // The sender lives in `self`.
            Err(_) => None,
        }
    }

    #[must_use]
    pub fn status(&self) -> KeeperStatus {
        let view = self.view.borrow();
        match &view.session {
            Some(session) if session.is_trusted() => KeeperStatus::Ready,
            Some(session) => KeeperStatus::NotReady(format!("session {} is not trusted any more", session.id())),
            None => KeeperStatus::NotReady(view.reason.clone()),
        }
    }

    /// Sessions alive when last asked, about each renewal interval; the own one is among them while it is trusted.
    #[must_use]
    pub fn live_sessions(&self) -> LiveSessions {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(own) = self.current().map(|session| session.id())
            && !live.sessions.contains(&own)
        {
            live.sessions.push(own);
        }
        live
    }

    /// Asks the service now.
    pub async fn refresh_live_sessions(&self) -> Result<(), LeaseError> {
        let sent = self.now();
        let sessions = self.around.bounded("live sessions", self.around.leases.live_sessions()).await?;
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.refresh(sessions, sent);
        Ok(())
    }

    /// When a session that was alive once was first missed.
    #[must_use]
    pub fn ended_at(&self, session: SessionId) -> Option<Boottime> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.ended.iter().rev().find(|(ended, _)| *ended == session).map(|(_, at)| *at)
    }

    /// Keeps a session until told to shut down, then closes it. Droppable at any point.
    pub async fn run(&self, mut shutdown: watch::Receiver<bool>) {
        let mut failures = 0;
        loop {
            tokio::select! {
                biased;
                // A sender that is gone can not tell any more: stop as well.
                _ = shutdown.wait_for(|stop| *stop) => break,
                () = self.keep_one_session(&mut failures) => {}
            }
        }
        self.close().await;
    }

    /// Opens a session, keeps it until it is lost, and pauses.
    async fn keep_one_session(&self, failures: &mut u32) {
        match self.open().await {
            Ok((session, renewals, granted)) => {
                *failures = 0;
                tracing::info!(session = %session.id(), backend = self.around.leases.backend(), "lease session opened");
                self.show(Some(Arc::clone(&session)), String::new());
                let reason = tokio::select! {
                    biased;
                    reason = self.renew(&session, renewals, granted) => reason,
                    never = upkeep::expire_holds(&session) => match never {},
                    never = upkeep::sweep(&session) => match never {},
                    never = self.poll_live_sessions() => match never {},
                };
                session.lose();
                tracing::warn!(session = %session.id(), %reason, "lease session lost: its holds are given up");
                self.show(None, format!("session {} was lost: {reason}", session.id()));
            }
            Err(error) => {
                tracing::warn!(%error, "lease session could not be opened");
                self.show(None, format!("no session: {error}"));
            }
        }
        let pause = BACKOFF_FIRST.saturating_mul(1 << (*failures).min(10)).min(BACKOFF_MAX);
        *failures = failures.saturating_add(1);
        let pause = self.session_ids.lock().unwrap_or_else(PoisonError::into_inner).jitter(pause);
        tokio::time::sleep(pause).await;
    }

    async fn open(&self) -> Result<(Arc<Session>, Renewals, Duration), LeaseError> {
        let id = self.session_ids.lock().unwrap_or_else(PoisonError::into_inner).next_id();
        let parameters = self.around.parameters;
        let sent = self.now();
        let request = self.around.leases.open_session(id, &self.label, parameters.ttl);
        let grant = self.around.bounded("open session", request).await?;
        let renewals = Renewals::opened(parameters, sent, grant.ttl);
        let session = Session::new(grant.session, self.around.clone(), renewals.trusted_until());
        Ok((session, renewals, grant.ttl))
    }

    /// Renews until the session is lost; returns why.
    async fn renew(&self, session: &Session, mut renewals: Renewals, granted: Duration) -> String {
        loop {
            let now = self.now();
            let send_at = match renewals.next(now) {
                Next::Lost(reason) => return reason,
                // Nothing is on its way here: `ask` has answered each request that was sent.
                Next::SendAt(at) | Next::AwaitUntil(at) => at.min(renewals.trusted_until()),
            };
            if now < send_at {
                tokio::select! {
                    biased;
                    () = session.lost() => return "a request found it gone".to_owned(),
                    () = tokio::time::sleep(send_at.saturating_since(now)) => {}
                }
                continue;
            }
            renewals.sent(now);
            let Next::AwaitUntil(until) = renewals.next(now) else { continue };
            let answer = self.ask(session, until.saturating_since(now), granted).await;
            let renewed = matches!(answer, Answer::Renewed { .. });
            if let Answer::Gone(reason) | Answer::Failed(reason) = &answer {
                self.around.metrics.lock_renew_failed();
                tracing::warn!(session = %session.id(), %reason, "lease session was not renewed");
            }
            renewals.answered(self.now(), answer);
            if renewed && !session.trust_until(renewals.trusted_until()) {
                return "trust window over while the answer was read".to_owned();
            }
        }
    }

    async fn ask(&self, session: &Session, limit: Duration, granted: Duration) -> Answer {
        match tokio::time::timeout(limit, self.around.leases.renew(session.id())).await {
            Ok(Ok(Renewal::Renewed)) => Answer::Renewed { ttl: granted },
            Ok(Ok(Renewal::Lost)) => Answer::Gone("the lease service does not know it".to_owned()),
            Ok(Err(error @ (LeaseError::SessionLost(_) | LeaseError::WrongGeneration(_)))) => {
                Answer::Gone(error.to_string())
            }
            Ok(Err(error)) => Answer::Failed(error.to_string()),
            Err(_) => Answer::Failed(format!("silent for {limit:?}")),
        }
    }

    async fn poll_live_sessions(&self) -> Infallible {
        loop {
            if let Err(error) = self.refresh_live_sessions().await {
                tracing::warn!(%error, "live sessions could not be read");
            }
            tokio::time::sleep(self.around.parameters.renew_every).await;
        }
    }

    async fn close(&self) {
        let Some(session) = self.view.borrow().session.clone() else { return };
        session.lose();
        self.show(None, "shutting down".to_owned());
        let request = self.around.leases.close_session(session.id());
        match self.around.bounded("close session", request).await {
            Ok(()) => tracing::info!(session = %session.id(), "lease session closed"),
            Err(error) => {
                tracing::warn!(session = %session.id(), %error, "lease session not closed: it ends after its TTL")
            }
        }
    }

    fn show(&self, session: Option<Arc<Session>>, reason: String) {
        self.view.send_replace(View { session, reason });
    }

    fn now(&self) -> Boottime {
        self.around.clock.boottime()
    }
}
