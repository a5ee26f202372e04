//! The idempotency key of a refund: a pure function of its environment, provider account and name.
//!
//! The same refund gets the same key on every replica and after every restart, so no create of it can look new to the provider.
//! Two environments or accounts never share one. The result is fixed by test vectors: changing it would make every refund that
//! is under way look new, so a new scheme needs a new prefix and leaves stored keys alone.

use crate::ids::IntentId;
use sha2::{Digest, Sha256};

/// Tightest limit among the providers (Square's).
pub const KEY_LENGTH_MAX: usize = 45;

/// Marks the scheme in keys, and keeps this hash apart from any other use of the same fields.
const PREFIX: &str = "rf1-";

/// Bytes of the hash that are kept: 200 bits are 40 characters, and two keys meet by chance after some 2^100 refunds.
const KEPT: usize = 25;

/// RFC 4648 in lower case: one case only, for providers that compare without regard to it.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The key all creates of this refund carry.
#[must_use]
pub fn idempotency_key(environment: &str, psp_account: &str, intent_id: &IntentId) -> String {
    let mut hash = Sha256::new_with_prefix(PREFIX);
    for field in [environment, psp_account, intent_id.as_str()] {
        // The length first, so that no two lists of fields make the same bytes.
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
    let digest = hash.finalize();
    let mut key = String::with_capacity(KEY_LENGTH_MAX);
    key.push_str(PREFIX);
    for group in digest[..KEPT].chunks_exact(5) {
        let bits = group.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        key.extend((0..8).rev().map(|place| char::from(ALPHABET[(bits >> (place * 5)) as usize & 31])));
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(environment: &str, account: &str, intent: &str) -> String {
        idempotency_key(environment, account, &IntentId::new(intent).unwrap())
    }

    #[test]
    fn keys_are_the_ones_that_were_always_made() {
        for (environment, account, intent, expected) in [
            ("production", "acct_1", "refund-1", "rf1-znunnj6qiczetx5uwtm7kk35vv5tmhywfm4a5d6k"),
            ("production", "acct_1", "refund-2", "rf1-ppcvkxfpy7t65fe6ww7jt4skplxqwnygsbx4sate"),
            ("staging", "acct_1", "refund-1", "rf1-gs526m6yzbbtvaje3amsnnzwtgmiakfeljzirb2g"),
            ("", "", "x", "rf1-xaj6fk2iw7dpisbddat5qdulyyznbbkjq5evzyp7"),
        ] {
            assert_eq!(key(environment, account, intent), expected, "{environment} {account} {intent}");
        }
    }

    #[test]
    fn keys_fit_the_tightest_provider() {
        for length in [1, 64, 128] {
            let key = key(&"é".repeat(500), "acct_1", &"x".repeat(length));
            assert_eq!(key.len(), 44);
            assert!(
                key.len() <= KEY_LENGTH_MAX && key.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-')),
                "{key}"
            );
        }
    }

    #[test]
    fn moving_letters_between_fields_makes_another_key() {
        let made = [("ab", "c", "d"), ("a", "bc", "d"), ("a", "b", "cd"), ("abc", "", "d"), ("", "abc", "d")];
        let keys: std::collections::BTreeSet<String> = made.iter().map(|(e, a, i)| key(e, a, i)).collect();
        assert_eq!(keys.len(), made.len());
    }
}
