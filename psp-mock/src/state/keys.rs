//! Idempotency keys, by Stripe's documented rules.
//!
//! The result of the first run is stored, errors included, once execution has begun, and repeated to the same parameters on the
//! same endpoint. Other parameters or another endpoint are refused; a run in flight refuses a second one. Validation failures and
//! conflicts are not stored, since the key is only taken after them. After its lifetime a key is forgotten: the same call then runs
//! as new. That is Stripe's "may be pruned", at the earliest moment it allows.

use super::Id;
use super::rows::ByName;
use crate::wire::ApiError;
use axum::body::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// Longer keys are refused.
pub(crate) const KEY_LONGEST: usize = 255;

/// Forgotten keys dropped per new one: a bounded share of the work of a call.
const PRUNED_PER_CALL: usize = 16;

#[derive(Debug)]
pub(crate) struct Keys {
    lifetime_ms: i64,
    entries: ByName<Entry>,
    /// In the order of first use, to prune from the front.
    order: VecDeque<(i64, Id)>,
}

#[derive(Debug)]
struct Entry {
    first_ms: i64,
    endpoint: u64,
    params: u64,
    result: Option<Stored>,
}

#[derive(Debug)]
struct Stored {
    answer: Answer,
    /// Until then the first call still counts as in flight.
    ready_ms: i64,
}

/// An answer as it is stored and sent.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn ok(json: Vec<u8>) -> Self {
        Self { status: 200, body: json.into() }
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        Self { status: error.status, body: error.to_json().into() }
    }
}

/// A key as one call uses it.
#[derive(Clone, Debug)]
pub(crate) struct KeyUse {
    /// Account and key: accounts do not share keys.
    pub(crate) scoped: Id,
    pub(crate) endpoint: u64,
    pub(crate) params: u64,
}

/// What is known about a key.
#[derive(Debug)]
pub(crate) enum Known {
    Nothing,
    Result(Answer),
    Refused(ApiError),
}

impl Keys {
    pub(crate) fn new(lifetime: Duration) -> Self {
        let lifetime_ms = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX / 2);
        Self { lifetime_ms, entries: ByName::default(), order: VecDeque::new() }
    }

    pub(crate) fn look(&self, key: &KeyUse, now_ms: i64) -> Known {
        let Some(entry) = self.entries.get(&key.scoped) else { return Known::Nothing };
        let ready = entry.result.as_ref().filter(|stored| stored.ready_ms <= now_ms);
        if ready.is_some() && now_ms - entry.first_ms >= self.lifetime_ms {
            return Known::Nothing;
        }
        if entry.endpoint != key.endpoint || entry.params != key.params {
            return Known::Refused(ApiError::key_reused(entry.endpoint == key.endpoint));
        }
        match ready {
            Some(stored) => Known::Result(stored.answer.clone()),
            None => Known::Refused(ApiError::key_in_use()),
        }
    }

    /// Takes a key that `look` knows nothing about; it is in flight until `finish`.
    pub(crate) fn begin(&mut self, key: &KeyUse, now_ms: i64) {
        self.prune(now_ms);
        let entry = Entry { first_ms: now_ms, endpoint: key.endpoint, params: key.params, result: None };
        self.entries.insert(key.scoped.clone(), entry);
        self.order.push_back((now_ms, key.scoped.clone()));
    }

    /// Stores the result; repeats get it from `ready_ms` on.
    pub(crate) fn finish(&mut self, key: &KeyUse, answer: Answer, ready_ms: i64) {
        if let Some(entry) = self.entries.get_mut(&key.scoped) {
            entry.result = Some(Stored { answer, ready_ms });
        }
    }

    fn prune(&mut self, now_ms: i64) {
        for _ in 0..PRUNED_PER_CALL {
            let Some((first_ms, _)) = self.order.front() else { return };
            if now_ms - first_ms < self.lifetime_ms {
                return;
            }
            let Some((first_ms, scoped)) = self.order.pop_front() else { return };
            // A key used again after its end has a newer entry, and one in flight must not be forgotten.
            if self.entries.get(&scoped).is_some_and(|e| e.first_ms == first_ms && e.result.is_some()) {
                self.entries.remove(&scoped);
            }
        }
    }
}
