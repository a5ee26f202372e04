//! Who calls: an API key as a bearer token or as basic credentials, and the account it stands for.

use super::Shared;
use crate::state::Id;
use crate::wire::ApiError;
use axum::http::{HeaderMap, header};

/// The account a call acts on: the one it names, else that of its API key.
pub(super) fn account(shared: &Shared, headers: &HeaderMap) -> Result<Id, ApiError> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.ok_or_else(|| ApiError::unauthorized("You did not provide an API key."))?;
    let api_key = match given.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim().to_owned(),
        Some((scheme, pair)) if scheme.eq_ignore_ascii_case("basic") => {
            let decoded = base64(pair.trim()).unwrap_or_default();
            decoded.split(':').next().unwrap_or_default().to_owned()
        }
        _ => String::new(),
    };
    if !(api_key.starts_with("sk_") || api_key.starts_with("rk_")) {
        return Err(ApiError::unauthorized("Invalid API Key provided."));
    }
    Ok(match headers.get("stripe-account").and_then(|value| value.to_str().ok()) {
        Some(named) => named.into(),
        None => shared.accounts.get(api_key.as_str()).unwrap_or(&shared.default_account).clone(),
    })
}

/// Standard base64 text; `None` when it is not.
fn base64(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_are_decoded() {
        for (text, expected) in [("c2tfdGVzdDo=", Some("sk_test:")), ("c2tfMQ==", Some("sk_1")), ("?", None)] {
            assert_eq!(base64(text).as_deref(), expected, "{text}");
        }
    }
}
