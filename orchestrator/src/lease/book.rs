//! What a session believes it holds or is about to hold: pure bookkeeping, no IO and no clock.
//!
//! A key the service lists for the session that is neither held here nor in a claim on its way is a stray: the answer to its claim was
//! lost, or its owner dropped it. A claim's answer moves its keys from "in flight" to "held" in one call, so that no sweep can see
//! them in between.

use super::{Hold, ResourceKey};
use crate::clock::Boottime;
use jobs::ids::Token;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
struct Entry {
    token: Token,
    step_began: Boottime,
}

/// A claim request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flight(u64);

#[derive(Debug, Default)]
pub(super) struct Book {
    held: BTreeMap<ResourceKey, Entry>,
    in_flight: BTreeMap<Flight, Vec<ResourceKey>>,
    flights: u64,
}

impl Book {
    pub(super) fn depart(&mut self, keys: &[ResourceKey]) -> Flight {
        self.flights += 1;
        let flight = Flight(self.flights);
        self.in_flight.insert(flight, keys.to_vec());
        flight
    }

    /// The claim is over; what it won is held from `now`.
    pub(super) fn arrive(&mut self, flight: Flight, won: &[Hold], now: Boottime) {
        self.in_flight.remove(&flight);
        for hold in won {
            self.held.insert(hold.key.clone(), Entry { token: hold.token, step_began: now });
        }
    }

    /// A new step of a hold begins. False if the hold is not in the book any more.
    pub(super) fn step_began(&mut self, hold: &Hold, now: Boottime) -> bool {
        match self.held.get_mut(&hold.key) {
            Some(entry) if entry.token == hold.token => {
                entry.step_began = now;
                true
            }
            _ => false,
        }
    }

    pub(super) fn forget(&mut self, hold: &Hold) {
        if self.held.get(&hold.key).is_some_and(|entry| entry.token == hold.token) {
            self.held.remove(&hold.key);
        }
    }

    /// Takes out the holds whose step began at least `hold_max` ago.
    pub(super) fn take_expired(&mut self, now: Boottime, hold_max: Duration) -> Vec<Hold> {
        let expired = |entry: &Entry| now >= entry.step_began.plus(hold_max);
        let taken: Vec<Hold> = self
            .held
            .iter()
            .filter(|(_, entry)| expired(entry))
            .map(|(key, entry)| Hold { key: key.clone(), token: entry.token })
            .collect();
        for hold in &taken {
            self.held.remove(&hold.key);
        }
        taken
    }

    /// Those of the listed holds that nobody here knows.
    pub(super) fn strays(&self, listed: Vec<Hold>) -> Vec<Hold> {
        let flying: BTreeSet<&ResourceKey> = self.in_flight.values().flatten().collect();
        let unknown = |hold: &Hold| {
            self.held.get(&hold.key).is_none_or(|entry| entry.token != hold.token) && !flying.contains(&hold.key)
        };
        listed.into_iter().filter(unknown).collect()
    }

    pub(super) fn held_count(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ResourceKey {
        ResourceKey(name.to_owned())
    }

    fn hold(name: &str, counter: i64) -> Hold {
        Hold { key: key(name), token: Token { epoch: 1, counter } }
    }

    fn at(seconds: u64) -> Boottime {
        Boottime(Duration::from_secs(seconds))
    }

    #[test]
    fn a_listed_key_is_a_stray_unless_held_with_that_token_or_in_flight() {
        let mut book = Book::default();
        let answered = book.depart(&[key("held"), key("taken")]);
        book.arrive(answered, &[hold("held", 5)], at(0));
        let lost = book.depart(&[key("lost")]);
        book.arrive(lost, &[], at(0));
        book.depart(&[key("flying")]);
        let listed = vec![hold("flying", 9), hold("held", 5), hold("held", 4), hold("lost", 7)];
        assert_eq!(book.strays(listed), [hold("held", 4), hold("lost", 7)]);
    }

    #[test]
    fn the_hold_maximum_counts_from_the_last_step() {
        let mut book = Book::default();
        let flight = book.depart(&[]);
        book.arrive(flight, &[hold("a", 1), hold("b", 2)], at(0));
        assert!(book.step_began(&hold("b", 2), at(8)));
        assert!(!book.step_began(&hold("b", 1), at(9)), "another token's step is none of this hold");
        assert_eq!(book.take_expired(at(9), Duration::from_secs(10)), []);
        assert_eq!(book.take_expired(at(10), Duration::from_secs(10)), [hold("a", 1)]);
        assert!(!book.step_began(&hold("a", 1), at(11)), "an expired hold begins no step");
        assert_eq!(book.take_expired(at(18), Duration::from_secs(10)), [hold("b", 2)]);
        assert_eq!(book.held_count(), 0);
    }

    #[test]
    fn forgetting_an_old_token_leaves_the_new_hold() {
        let mut book = Book::default();
        let flight = book.depart(&[]);
        book.arrive(flight, &[hold("a", 2)], at(0));
        book.forget(&hold("a", 1));
        assert_eq!(book.held_count(), 1);
        book.forget(&hold("a", 2));
        assert_eq!(book.held_count(), 0);
    }
}
