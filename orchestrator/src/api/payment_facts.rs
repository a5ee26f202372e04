//! What never changes about a payment, kept so that a submit need not read it again.
//!
//! Provider, account, provider's id and currency are fixed when a payment is imported and payments are never deleted, so an entry
//! can not be wrong, only missing. Counters are not here: the guard against refunding too much is the store's.

use crate::store::submit::NewPayment;
use jobs::ids::PaymentId;
use jobs::money::Currency;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Entries of one generation; two are kept. About 20 MB in all.
const GENERATION_ENTRIES_MAX: usize = 50_000;

/// Where a payment was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentFacts {
    pub psp: String,
    pub psp_account: String,
    pub psp_payment_ref: String,
    pub currency: Currency,
}

impl From<&NewPayment> for PaymentFacts {
    fn from(payment: &NewPayment) -> Self {
        Self {
            psp: payment.psp.clone(),
            psp_account: payment.psp_account.clone(),
            psp_payment_ref: payment.psp_payment_ref.clone(),
            currency: payment.captured.currency,
        }
    }
}

impl From<&crate::store::read::Payment> for PaymentFacts {
    fn from(payment: &crate::store::read::Payment) -> Self {
        Self {
            psp: payment.psp.clone(),
            psp_account: payment.psp_account.clone(),
            psp_payment_ref: payment.psp_payment_ref.clone(),
            currency: payment.captured.currency,
        }
    }
}

/// A bounded memory of payments; the oldest generation is forgotten when the newest is full.
#[derive(Debug, Default)]
pub struct PaymentFactsCache {
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    newest: BTreeMap<PaymentId, Arc<PaymentFacts>>,
    older: BTreeMap<PaymentId, Arc<PaymentFacts>>,
}

impl PaymentFactsCache {
    #[must_use]
    pub fn get(&self, id: &PaymentId) -> Option<Arc<PaymentFacts>> {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.newest.get(id).or_else(|| generations.older.get(id)).cloned()
    }

    /// Remembers a payment that is on disk.
    pub fn put(&self, id: PaymentId, facts: PaymentFacts) -> Arc<PaymentFacts> {
        let facts = Arc::new(facts);
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.newest.len() >= GENERATION_ENTRIES_MAX {
            generations.older = std::mem::take(&mut generations.newest);
        }
        generations.newest.insert(id, facts.clone());
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_forgets_the_oldest_and_never_grows_beyond_two_generations() {
        let cache = PaymentFactsCache::default();
        let name = |n: usize| PaymentId::from_stored(format!("p-{n}"));
        let facts = PaymentFacts {
            psp: "acme".to_owned(),
            psp_account: "a".to_owned(),
            psp_payment_ref: "pi".to_owned(),
            currency: "EUR".parse().unwrap(),
        };
        for n in 0..=2 * GENERATION_ENTRIES_MAX {
            cache.put(name(n), facts.clone());
        }
        assert_eq!(cache.get(&name(0)), None);
        assert!(cache.get(&name(GENERATION_ENTRIES_MAX)).is_some());
        assert!(cache.get(&name(2 * GENERATION_ENTRIES_MAX)).is_some());
    }
}
