//! Form-encoded parameters with Stripe's bracket nesting: `metadata[intent_id]=x`, `created[gte]=1`.
//!
//! Names stay flat; a nested name is found by its prefix. That is all the nesting this API needs.

use super::ApiError;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    pairs: Vec<(String, String)>,
}

impl Form {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        let pairs = serde_urlencoded::from_bytes(bytes)
            .map_err(|e| ApiError::invalid(format!("Invalid form encoding: {e}")))?;
        Ok(Self { pairs })
    }

    /// The value under `name`; of a repeated name the last one counts.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// As `get`, without empty values.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn integer(&self, name: &'static str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let invalid =
            |_| ApiError::invalid(format!("Invalid integer: {text}")).coded("parameter_invalid_integer").on(name);
        text.parse().map(Some).map_err(invalid)
    }

    /// The pairs under `name[...]`, with the name inside the brackets.
    pub(crate) fn nested<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.pairs.iter().filter_map(move |(n, value)| {
            let inside = n.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((inside, value.as_str()))
        })
    }

    /// Equal for equal parameters on the same endpoint, in whatever order they are sent.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_unstable();
        let mut hasher = DefaultHasher::new();
        pairs.hash(&mut hasher);
        hasher.finish()
    }
}

/// Stripe's limits for metadata.
const METADATA_PAIRS_MOST: usize = 50;
const METADATA_NAME_LONGEST: usize = 40;
const METADATA_VALUE_LONGEST: usize = 500;

/// Key-value pairs kept with an object, in the order they were first given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata(Vec<(Box<str>, Box<str>)>);

impl Metadata {
    /// Applies `metadata[...]` of a form: an empty value removes its name, `metadata=` removes all.
    pub(crate) fn merge(&mut self, form: &Form) -> Result<(), ApiError> {
        if form.get("metadata") == Some("") {
            self.0.clear();
        }
        for (name, value) in form.nested("metadata") {
            if name.chars().count() > METADATA_NAME_LONGEST || value.chars().count() > METADATA_VALUE_LONGEST {
                return Err(ApiError::invalid(format!("Metadata `{name}` is too long.")).on("metadata"));
            }
            let at = self.0.iter().position(|(n, _)| &**n == name);
            match (at, value.is_empty()) {
                (Some(at), true) => drop(self.0.remove(at)),
                (None, true) => {}
                (Some(at), false) => self.0[at].1 = value.into(),
                (None, false) => self.0.push((name.into(), value.into())),
            }
        }
        if self.0.len() > METADATA_PAIRS_MOST {
            return Err(ApiError::invalid(format!("Metadata is limited to {METADATA_PAIRS_MOST} keys.")).on("metadata"));
        }
        Ok(())
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| &**n == name).map(|(_, value)| &**value)
    }
}

impl serde::Serialize for Metadata {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.pairs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_nest_and_order_does_not_matter() {
        let form =
            Form::parse(b"amount=5&metadata%5Bintent_id%5D=rf_1&metadata[note]=a+b&created[gte]=3").expect("parses");
        assert_eq!(form.integer("amount").expect("is a number"), Some(5));
        assert_eq!(form.nested("metadata").collect::<Vec<_>>(), [("intent_id", "rf_1"), ("note", "a b")]);
        assert_eq!(form.nested("created").collect::<Vec<_>>(), [("gte", "3")]);
        let other =
            Form::parse(b"created[gte]=3&metadata[note]=a b&metadata[intent_id]=rf_1&amount=5").expect("parses");
        assert_eq!(form.fingerprint(), other.fingerprint());
        assert_ne!(form.fingerprint(), Form::parse(b"amount=6").expect("parses").fingerprint());
    }

    #[test]
    fn metadata_is_merged_and_empty_values_remove() {
        let mut metadata = Metadata::default();
        for (form, expected) in [
            ("metadata[a]=1&metadata[b]=2", r#"{"a":"1","b":"2"}"#),
            ("metadata[a]=&metadata[b]=3", r#"{"b":"3"}"#),
            ("amount=1", r#"{"b":"3"}"#),
            ("metadata=", "{}"),
        ] {
            metadata.merge(&Form::parse(form.as_bytes()).expect("parses")).expect("is within limits");
            assert_eq!(serde_json::to_string(&metadata).expect("serialises"), expected, "{form}");
        }
    }
}
