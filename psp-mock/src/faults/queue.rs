//! The queue of scripted faults and the seeded rates: which of them a call meets.
//!
//! Faults that name an intent are filed under it, so that ten thousand scripts cost a call no more than one.

use super::{CallKind, Effect, Fault, Gap, Match, Seen, WebhookFault};
use crate::config::FaultRate;
use crate::ids;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Scripts beyond this are refused: a queue has a bound.
const FAULTS_MOST: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Queue {
    seed: u64,
    rates: Vec<FaultRate>,
    /// By id, so oldest first.
    waiting: BTreeMap<u64, Waiting>,
    by_intent: HashMap<String, Vec<u64>>,
    /// Ids of those that name no intent.
    for_any: Vec<u64>,
    last_id: u64,
}

/// A fault in the queue, as `GET /_mock/faults` shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Waiting {
    id: u64,
    #[serde(flatten)]
    fault: Fault,
    /// Fitting calls so far, those before `nth` included.
    fitted: u32,
    hits: u32,
}

impl Queue {
    pub(crate) fn new(seed: u64, rates: Vec<FaultRate>) -> Self {
        let (waiting, by_intent, for_any) = (BTreeMap::new(), HashMap::new(), Vec::new());
        Self { seed, rates, waiting, by_intent, for_any, last_id: 0 }
    }

    pub(crate) fn add(&mut self, mut fault: Fault) -> Result<u64, String> {
        fault.check()?;
        if self.waiting.len() >= FAULTS_MOST {
            return Err(format!("at most {FAULTS_MOST} faults can wait"));
        }
        if matches!(fault.effects[..], [Effect::Webhook(_)]) {
            fault.matches.call = CallKind::Webhook;
        }
        self.last_id += 1;
        let id = self.last_id;
        match &fault.matches.intent {
            Some(intent) => self.by_intent.entry(intent.clone()).or_default().push(id),
            None => self.for_any.push(id),
        }
        self.waiting.insert(id, Waiting { id, fault, fitted: 0, hits: 0 });
        Ok(id)
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.values()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.by_intent.clear();
        self.for_any.clear();
    }

    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let Some(removed) = self.waiting.remove(&id) else { return false };
        match &removed.fault.matches.intent {
            Some(intent) => {
                if let Some(ids) = self.by_intent.get_mut(intent) {
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        self.by_intent.remove(intent);
                    }
                }
            }
            None => self.for_any.retain(|other| *other != id),
        }
        true
    }

    /// Whether no call can meet a fault now.
    pub(crate) fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.rates.is_empty()
    }

    /// The effects for this call: of the oldest fault that fits, else those drawn. `name` is what the draw goes by.
    pub(crate) fn take(&mut self, seen: &Seen<'_>, name: &str) -> Vec<Effect> {
        self.take_scripted(seen).unwrap_or_else(|| self.draw(seen, name))
    }

    pub(crate) fn take_webhook(&mut self, seen: &Seen<'_>, name: &str) -> Option<WebhookFault> {
        self.take(seen, name).into_iter().find_map(|effect| match effect {
            Effect::Webhook(fault) => Some(fault),
            _ => None,
        })
    }

    /// The gaps of the settlement report with their matches and counts; reading uses nothing up.
    pub(crate) fn gaps(&self) -> Vec<(Match, u32, Gap)> {
        let gap = |w: &Waiting| match &w.fault.effects[..] {
            [Effect::Settlement(gap)] => Some((w.fault.matches.clone(), w.fault.count, gap.clone())),
            _ => None,
        };
        self.waiting.values().filter_map(gap).collect()
    }

    fn take_scripted(&mut self, seen: &Seen<'_>) -> Option<Vec<Effect>> {
        if self.waiting.is_empty() {
            return None;
        }
        let named = seen.intent.and_then(|i| self.by_intent.get(i)).map_or(&[][..], Vec::as_slice);
        let mut ids: Vec<u64> = named.iter().chain(&self.for_any).copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(waiting) = self.waiting.get_mut(&id) else { continue };
            if !waiting.meets(seen) {
                continue;
            }
            let effects = waiting.fault.effects.clone();
            if waiting.fault.count != 0 && waiting.hits >= waiting.fault.count {
                self.remove(id);
            }
            return Some(effects);
        }
        None
    }

    /// Draws each rate by (seed, name, kind): the same call meets the same faults whatever runs beside it.
    fn draw(&self, seen: &Seen<'_>, name: &str) -> Vec<Effect> {
        let base = ids::hash(self.seed, name);
        let hit = |(i, rate): (usize, &FaultRate)| {
            let fits = match rate.effect {
                Effect::Webhook(_) => seen.kind == CallKind::Webhook,
                _ => seen.kind == CallKind::Create && !(seen.repeat && rate.effect.needs_execution()),
            };
            let roll = ids::mix(base.wrapping_add(i as u64)) % 1_000_000;
            (fits && roll < u64::from(rate.per_million)).then(|| rate.effect.clone())
        };
        self.rates.iter().enumerate().find_map(hit).into_iter().collect()
    }
}

impl Waiting {
    /// Counts a fitting call; true when the fault hits it.
    fn meets(&mut self, seen: &Seen<'_>) -> bool {
        let effects = &self.fault.effects;
        let gap = matches!(effects[..], [Effect::Settlement(_)]);
        let for_event = matches!(effects[..], [Effect::Webhook(_)]);
        if gap || for_event != (seen.kind == CallKind::Webhook) {
            return false;
        }
        if (seen.repeat && effects.iter().any(Effect::needs_execution)) || !self.fault.matches.fits(seen) {
            return false;
        }
        self.fitted = self.fitted.saturating_add(1);
        if self.fitted < self.fault.matches.nth.unwrap_or(1) {
            return false;
        }
        self.hits = self.hits.saturating_add(1);
        true
    }
}
