//! What statements share: the database's clock, many rows as one bound parameter, and the check of how many were written.
//!
//! Rows travel as a JSON array that the statement takes apart with `json_each`. JSON integers reach SQLite as 64-bit integers, exactly; nothing on the way is a float. Bytes travel as hexadecimal text.

use super::connect::store_error;
use crate::store::StoreError;
use serde::Serialize;
use sqlx::SqliteConnection;

/// SQLite's clock, which is the host's: whole milliseconds, counted in integers, the same throughout one statement.
const NOW_SELECT: &str = "
    SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000";

/// The time all rows of a transaction carry.
pub(super) async fn now_micros(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    sqlx::query_scalar(NOW_SELECT).fetch_one(connection).await.map_err(store_error)
}

/// The decision was made on rows read in the same transaction, so any other count is a fault of ours: nothing is kept.
pub(super) fn expect_rows(what: &str, written: u64, expected: usize) -> Result<(), StoreError> {
    if u64::try_from(expected).is_ok_and(|expected| expected == written) {
        return Ok(());
    }
    Err(StoreError::Refused(format!("{what}: {written} rows where {expected} were decided")))
}

/// The array for `json_each`.
pub(super) fn array<T: Serialize>(rows: &[T]) -> Result<String, StoreError> {
    serde_json::to_string(rows).map_err(|error| StoreError::Refused(format!("the rows do not write as JSON: {error}")))
}

/// One document for a JSON column.
pub(super) fn document<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Refused(format!("the value does not write as JSON: {error}")))
}

/// For `unhex` on the other side.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_two_digits_each() {
        assert_eq!(hexadecimal(&[0, 15, 16, 255]), "000f10ff");
        assert_eq!(hexadecimal(&[]), "");
    }

    #[test]
    fn large_integers_keep_every_digit() {
        assert_eq!(array(&[9_007_199_254_740_993_i64, i64::MAX]).unwrap(), "[9007199254740993,9223372036854775807]");
    }
}
