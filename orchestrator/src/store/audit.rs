//! The hash chain of the audit log, the same for every store.
//!
//! A row's hash covers the hash before it and every field, each with its length in front, so that no two rows read the same. Whoever
//! changes, removes or reorders a row breaks the chain from there on; cutting off the end shows only against a hash kept elsewhere.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What the first row has as the hash before it.
pub const FIRST_PREVIOUS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One thing done by a person, an approval or a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuditEntry<'a> {
    /// 1, 2, 3, ...
    pub audit_id: i64,
    pub actor: &'a str,
    /// Noun and verb: `psp.pause`.
    pub action: &'a str,
    /// `psp/acme`, `intent/r-1`.
    pub object: &'a str,
    pub reason: &'a str,
    pub before: Option<&'a Value>,
    pub after: Option<&'a Value>,
    /// Counts to the microsecond, which is what databases keep.
    pub created_at: DateTime<Utc>,
}

/// The hash of a row that follows `previous`, as 64 hexadecimal digits.
#[must_use]
pub fn chain_hash(previous: &str, entry: &AuditEntry<'_>) -> String {
    let mut hash = Sha256::new();
    let mut add = |field: &str| {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    };
    // Keys of a JSON object come out sorted, so a value reads the same after any database kept it.
    let json = |value: Option<&Value>| value.map_or_else(String::new, Value::to_string);
    add(previous);
    add(&entry.audit_id.to_string());
    add(entry.actor);
    add(entry.action);
    add(entry.object);
    add(entry.reason);
    add(&json(entry.before));
    add(&json(entry.after));
    add(&entry.created_at.timestamp_micros().to_string());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry<'a>(actor: &'a str, reason: &'a str, after: Option<&'a Value>) -> AuditEntry<'a> {
        AuditEntry {
            audit_id: 1,
            actor,
            action: "psp.pause",
            object: "psp/acme",
            reason,
            before: None,
            after,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_hash_depends_on_the_row_before_and_on_where_fields_end() {
        let first = chain_hash(FIRST_PREVIOUS, &entry("ann", "late", None));
        assert_eq!(first.len(), 64);
        assert_eq!(first, chain_hash(FIRST_PREVIOUS, &entry("ann", "late", None)));
        assert_ne!(first, chain_hash(&first, &entry("ann", "late", None)));
        assert_ne!(first, chain_hash(FIRST_PREVIOUS, &entry("annl", "ate", None)));
    }

    #[test]
    fn the_order_in_which_a_value_was_built_does_not_matter() {
        let (one, other) = (json!({ "a": 1, "b": [true, null] }), json!({ "b": [true, null], "a": 1 }));
        assert_eq!(
            chain_hash(FIRST_PREVIOUS, &entry("ann", "late", Some(&one))),
            chain_hash(FIRST_PREVIOUS, &entry("ann", "late", Some(&other)))
        );
    }
}
