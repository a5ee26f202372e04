//! The keys of a claim as sql leases send them: distinct, sorted by bytes, each with its place in the request.
//!
//! The n-th key's token is the counter before the claim plus n, from 1; a key that was asked for twice is taken the second time.

use super::{Claim, ResourceKey};
use jobs::ids::Token;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimOrder {
    asked: usize,
    places: Vec<usize>,
    keys: Vec<String>,
}

impl ClaimOrder {
    pub(crate) fn new(keys: &[ResourceKey]) -> Self {
        let mut firsts = BTreeMap::new();
        for (place, key) in keys.iter().enumerate() {
            firsts.entry(key.0.as_str()).or_insert(place);
        }
        let sorted = firsts.keys().map(|key| (*key).to_owned()).collect();
        Self { asked: keys.len(), places: firsts.into_values().collect(), keys: sorted }
    }

    /// The keys to send; given out once.
    pub(crate) fn take_keys(&mut self) -> Vec<String> {
        std::mem::take(&mut self.keys)
    }

    /// The answers in the order of the request, from the counters that were won.
    pub(crate) fn claims(&self, epoch: i64, counter_before: i64, counters: &[i64]) -> Vec<Claim> {
        let mut claims = vec![Claim::Taken; self.asked];
        for counter in counters {
            let nth = usize::try_from(counter - counter_before - 1).ok();
            let place = nth.and_then(|nth| self.places.get(nth));
            if let Some(claim) = place.and_then(|place| claims.get_mut(*place)) {
                *claim = Claim::Held(Token { epoch, counter: *counter });
            }
        }
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_asked_and_a_repeat_is_taken() {
        let keys = ["c", "a", "c", "b"].map(|key| ResourceKey(key.to_owned()));
        let mut order = ClaimOrder::new(&keys);
        assert_eq!(order.take_keys(), ["a", "b", "c"]);
        let held = |counter| Claim::Held(Token { epoch: 2, counter });
        assert_eq!(order.claims(2, 10, &[11, 13]), [held(13), held(11), Claim::Taken, Claim::Taken]);
        assert_eq!(order.claims(2, 10, &[12]), [Claim::Taken, Claim::Taken, Claim::Taken, held(12)]);
        assert_eq!(order.claims(2, 10, &[]), [Claim::Taken; 4]);
    }
}
