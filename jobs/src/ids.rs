//! Names of things as types, so that a payment can not be passed where an intent is meant.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// Longest identifier a caller may choose. It fits every index and leaves room in a 255-character provider field.
pub const IDENTIFIER_LENGTH_MAX: usize = 128;

/// Why a caller's identifier was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    #[error("{what} is empty: send 1 to {IDENTIFIER_LENGTH_MAX} characters")]
    Empty { what: &'static str },
    #[error("{what} has {length} characters: send at most {IDENTIFIER_LENGTH_MAX}")]
    TooLong { what: &'static str, length: usize },
    #[error("{what} is only dots, which paths take for folders: use a letter or digit too")]
    OnlyDots { what: &'static str },
    #[error("{what} holds {found:?}: use letters, digits and . _ : - only")]
    Character { what: &'static str, found: char },
}

/// Checks an identifier chosen by a caller: visible ASCII that survives URLs, logs and spreadsheets unchanged.
pub fn check_identifier(what: &'static str, text: &str) -> Result<(), IdentifierError> {
    if text.is_empty() {
        return Err(IdentifierError::Empty { what });
    }
    if text.len() > IDENTIFIER_LENGTH_MAX {
        return Err(IdentifierError::TooLong { what, length: text.chars().count() });
    }
    if text.chars().all(|c| c == '.') {
        return Err(IdentifierError::OnlyDots { what });
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-'))) {
        Some(found) => Err(IdentifierError::Character { what, found }),
        None => Ok(()),
    }
}

/// One logical refund, named by the caller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IntentId(String);

impl IntentId {
    /// Accepts a caller's name for a refund.
    pub fn new(text: &str) -> Result<Self, IdentifierError> {
        check_identifier("intent_id", text)?;
        Ok(Self(text.to_owned()))
    }

    /// A name that was checked when it was stored.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The captured payment a refund takes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PaymentId(String);

impl PaymentId {
    /// Accepts a caller's name for a payment.
    pub fn new(text: &str) -> Result<Self, IdentifierError> {
        check_identifier("payment_id", text)?;
        Ok(Self(text.to_owned()))
    }

    /// A name that was checked when it was stored.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PaymentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One physical call to a provider; random, so that no two holders can ever mean the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub Uuid);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A replica's lease with the lease service; random per process start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub Uuid);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number the lease service hands out with a hold, compared in lexicographic order: generation first, then counter.
/// The highest one a row has accepted is that row's fence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    pub epoch: i64,
    pub counter: i64,
}

impl Token {
    /// The fence of a row that no holder has touched.
    pub const NONE: Self = Self { epoch: 0, counter: 0 };
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_compare_by_epoch_before_counter() {
        assert!(Token { epoch: 2, counter: 1 } > Token { epoch: 1, counter: 900 });
        assert!(Token { epoch: 2, counter: 2 } > Token { epoch: 2, counter: 1 });
        assert!(Token::NONE < Token { epoch: 0, counter: 1 });
    }

    #[test]
    fn identifiers_that_do_not_survive_a_url_are_refused() {
        for text in ["", " ", "a b", "a/b", "é", "a\n", "'; drop table", ".", "..", &"x".repeat(129)] {
            assert!(IntentId::new(text).is_err(), "{text:?}");
        }
        for text in ["r-1", "ORDER:2026.12_01", &"x".repeat(128)] {
            assert!(IntentId::new(text).is_ok(), "{text:?}");
        }
    }
}
