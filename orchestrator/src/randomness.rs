//! Where random identities come from: passed in, so that simulation can repeat a history from its seed.

use jobs::ids::AttemptId;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// A source of random identities.
#[derive(Debug)]
pub struct Randomness(Mutex<StdRng>);

impl Randomness {
    /// Seeded by the operating system.
    #[must_use]
    pub fn from_os() -> Self {
        Self(Mutex::new(StdRng::from_os_rng()))
    }

    /// The same seed gives the same identities.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    pub fn attempt_id(&self) -> AttemptId {
        AttemptId(self.uuid())
    }
}
