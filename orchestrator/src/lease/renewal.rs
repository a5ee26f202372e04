//! When to renew and how long to believe: rules without IO.
//!
//! A session is trusted until (time the last renewed request was SENT) + TTL - margin: the service counts its TTL from some later
//! point, so it keeps the session at least that long. A request that fails or stays silent moves nothing; the next one goes out
//! after a short pause, and if none is answered the trust window ends and with it the session. The service saying that it does not know the session,
//! or a TTL that leaves no trust, ends it at once. Lost is final: a late good answer revives nothing.
//!
//! Left out: wall clocks. All times are on CLOCK_BOOTTIME, which goes on while the machine sleeps.

use super::parameters::LeaseParameters;
use crate::clock::Boottime;
use std::time::Duration;

/// After a failed renewal the next one is sent this part of the renewal interval later.
const RETRY_PART: u32 = 4;

/// What a renewal request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Alive for this long from the request on.
    Renewed { ttl: Duration },
    /// The service does not know the session, or is another one.
    Gone(String),
    /// An error or silence until the request's own deadline: whether it took effect is unknown.
    Failed(String),
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    SendAt(Boottime),
    /// A request is on its way; stop waiting for it then.
    AwaitUntil(Boottime),
    Lost(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Resting { send_at: Boottime },
    Sent { at: Boottime },
    Lost { reason: String },
}

/// The renewal of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewals {
    parameters: LeaseParameters,
    trusted_until: Boottime,
    phase: Phase,
    /// Renewals that failed since the last good one.
    failures: u32,
}

impl Renewals {
    /// The session was opened by a request sent at `sent`, for `granted` or the time asked for, whichever is shorter.
    #[must_use]
    pub fn opened(parameters: LeaseParameters, sent: Boottime, granted: Duration) -> Self {
        let resting = Phase::Resting { send_at: sent.plus(parameters.renew_every) };
        let mut new = Self { parameters, trusted_until: sent, phase: resting, failures: 0 };
        new.extend(sent, granted);
        new
    }

    #[must_use]
    pub fn trusted_until(&self) -> Boottime {
        self.trusted_until
    }

    /// What to do at `now`. Notices the end of the trust window.
    #[must_use]
    pub fn next(&mut self, now: Boottime) -> Next {
        self.notice_end(now);
        match &self.phase {
            Phase::Lost { reason } => Next::Lost(reason.clone()),
            Phase::Resting { send_at } => Next::SendAt(*send_at),
            Phase::Sent { at } => Next::AwaitUntil(at.plus(self.parameters.request_timeout).min(self.trusted_until)),
        }
    }

    /// A request goes out.
    pub fn sent(&mut self, now: Boottime) {
        if let Phase::Resting { .. } = self.phase {
            self.phase = Phase::Sent { at: now };
        }
    }

    /// The request on its way came to this. An answer to nothing is ignored.
    pub fn answered(&mut self, now: Boottime, answer: Answer) {
        let Phase::Sent { at } = self.phase else { return };
        match answer {
            Answer::Gone(reason) => {
                self.failures += 1;
                self.phase = Phase::Lost { reason };
            }
            Answer::Failed(reason) => {
                self.failures += 1;
                self.phase = Phase::Resting { send_at: now.plus(self.parameters.renew_every / RETRY_PART) };
                if now >= self.trusted_until {
                    self.phase = Phase::Lost { reason: format!("trust window over, last renewal failed: {reason}") };
                }
            }
            Answer::Renewed { ttl } => {
                self.notice_end(now);
                if !matches!(self.phase, Phase::Lost { .. }) {
                    self.failures = 0;
                    self.phase = Phase::Resting { send_at: at.plus(self.parameters.renew_every) };
                    self.extend(at, ttl);
                }
            }
        }
    }

    fn extend(&mut self, sent: Boottime, granted: Duration) {
        let trust = granted.min(self.parameters.ttl).saturating_sub(self.parameters.margin);
        if trust.is_zero() {
            self.phase = Phase::Lost { reason: format!("the service granted {granted:?}, less than the margin") };
            return;
        }
        // Also when that is earlier than before: a shorter grant shortens what the service keeps.
        self.trusted_until = sent.plus(trust);
    }

    fn notice_end(&mut self, now: Boottime) {
        if now >= self.trusted_until && !matches!(self.phase, Phase::Lost { .. }) {
            let reason = format!("trust window over: not renewed in time, {} renewals failed", self.failures);
            self.phase = Phase::Lost { reason };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Boottime {
        Boottime(Duration::from_millis(ms))
    }

    fn renewed() -> Answer {
        Answer::Renewed { ttl: Duration::from_secs(10) }
    }

    fn gone() -> Answer {
        Answer::Gone("unknown session".to_owned())
    }

    fn failed() -> Answer {
        Answer::Failed("reset".to_owned())
    }

    /// Opened at 0 with TTL 10 s, margin 2 s, renewals every 3 s, request timeout 2 s. Each exchange is (sent, answered, answer).
    #[track_caller]
    fn check(exchanges: &[(u64, u64, Answer)], now: u64, expected: Result<Next, &str>, trusted_until: u64) {
        let mut renewals = Renewals::opened(LeaseParameters::default(), at(0), Duration::from_secs(10));
        for (sent, answered, answer) in exchanges {
            renewals.sent(at(*sent));
            renewals.answered(at(*answered), answer.clone());
        }
        let next = renewals.next(at(now));
        match (&expected, &next) {
            (Ok(expected), next) if expected == next => {}
            (Err(reason), Next::Lost(found)) if found.contains(reason) => {}
            _ => panic!("expected {expected:?}, found {next:?}"),
        }
        assert_eq!(renewals.trusted_until(), at(trusted_until));
    }

    #[test]
    fn trust_counts_from_the_time_the_request_was_sent() {
        check(&[], 0, Ok(Next::SendAt(at(3_000))), 8_000);
        check(&[(3_000, 4_900, renewed())], 5_000, Ok(Next::SendAt(at(6_000))), 11_000);
        check(&[(3_000, 3_001, renewed()), (6_000, 6_001, renewed())], 7_000, Ok(Next::SendAt(at(9_000))), 14_000);
    }

    #[test]
    fn a_failed_renewal_is_tried_again_soon_and_moves_nothing() {
        check(&[(3_000, 5_000, failed())], 5_000, Ok(Next::SendAt(at(5_750))), 8_000);
        check(&[(3_000, 5_000, failed()), (5_750, 5_800, renewed())], 6_000, Ok(Next::SendAt(at(8_750))), 13_750);
    }

    #[test]
    fn silence_and_errors_end_trust_when_the_window_ends() {
        check(&[(3_000, 5_000, failed())], 7_999, Ok(Next::SendAt(at(5_750))), 8_000);
        check(&[(3_000, 5_000, failed())], 8_000, Err("trust window over"), 8_000);
        check(&[(3_000, 5_000, failed()), (5_750, 8_000, failed())], 8_000, Err("last renewal failed: reset"), 8_000);
        check(&[], 8_000, Err("trust window over"), 8_000);
    }

    #[test]
    fn what_the_service_does_not_know_is_lost_at_once_and_for_good() {
        check(&[(3_000, 3_100, gone())], 3_100, Err("unknown session"), 8_000);
        check(&[(3_000, 3_100, gone()), (3_200, 3_300, renewed())], 3_300, Err("unknown session"), 8_000);
    }

    #[test]
    fn a_good_answer_after_the_window_revives_nothing() {
        check(&[(3_000, 8_000, renewed())], 8_000, Err("trust window over"), 8_000);
        check(&[(3_000, 60_000, renewed())], 60_001, Err("trust window over"), 8_000);
    }

    #[test]
    fn a_ttl_without_trust_is_lost_and_a_shorter_one_is_believed() {
        let ttl = |ms| Answer::Renewed { ttl: Duration::from_millis(ms) };
        check(&[(3_000, 3_100, ttl(0))], 3_100, Err("granted 0ns"), 8_000);
        check(&[(3_000, 3_100, ttl(2_000))], 3_100, Err("less than the margin"), 8_000);
        check(&[(6_000, 6_100, ttl(5_000))], 6_100, Ok(Next::SendAt(at(9_000))), 9_000);
        check(&[(3_000, 3_100, ttl(4_000))], 3_100, Ok(Next::SendAt(at(6_000))), 5_000);
        check(&[(3_000, 3_100, ttl(99_000))], 3_100, Ok(Next::SendAt(at(6_000))), 11_000);
    }

    #[test]
    fn a_request_on_its_way_is_awaited_for_its_own_deadline_or_the_windows_end() {
        for (sent, until) in [(3_000, 5_000), (7_000, 8_000)] {
            let mut renewals = Renewals::opened(LeaseParameters::default(), at(0), Duration::from_secs(10));
            renewals.sent(at(sent));
            assert_eq!(renewals.next(at(sent)), Next::AwaitUntil(at(until)));
        }
    }
}
