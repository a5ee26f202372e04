//! Collects what is wrong with a configuration, so that a person repairs it in one go.

use super::duration::parse_duration;
use secrecy::SecretString;
use std::fmt;
use std::time::Duration;

/// One thing that is wrong, by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// As written in the file, e.g. `psp.acme.timeout`.
    pub key: String,
    /// What is wrong and what to do.
    pub problem: String,
}

/// A configuration that nothing may start with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file.
    pub file: String,
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can not be used", self.file)?;
        for Problem { key, problem } in &self.problems {
            write!(f, "\n  {key}: {problem}")?;
        }
        Ok(())
    }
}

impl ConfigError {
    pub(super) fn unreadable(file: &str, problem: &str) -> Self {
        Self { file: file.to_owned(), problems: vec![Problem { key: "file".to_owned(), problem: problem.to_owned() }] }
    }

    /// A syntax or type error. The offending line itself is not repeated: it may hold a secret.
    pub(super) fn not_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let key = error.span().and_then(|span| text.get(..span.start)).map_or_else(
            || "file".to_owned(),
            |before| {
                let line = before.matches('\n').count() + 1;
                match text.lines().nth(line - 1).and_then(|line| line.split_once('=')) {
                    Some((key, _)) => format!("line {line}, {}", key.trim()),
                    None => format!("line {line}"),
                }
            },
        );
        Self { file: file.to_owned(), problems: vec![Problem { key, problem: error.message().trim().to_owned() }] }
    }
}

/// Collects problems while a configuration is built.
pub(super) struct Checker<'a> {
    problems: Vec<Problem>,
    environment_variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(environment_variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { problems: Vec::new(), environment_variable }
    }

    pub(super) fn problem(&mut self, key: &str, problem: impl Into<String>) {
        self.problems.push(Problem { key: key.to_owned(), problem: problem.into() });
    }

    /// Says so unless the condition holds.
    pub(super) fn require(&mut self, holds: bool, key: &str, problem: impl FnOnce() -> String) {
        if !holds {
            self.problem(key, problem());
        }
    }

    pub(super) fn identifier(&mut self, key: &str, text: &str, length_max: usize) {
        if let Err(error) = jobs::ids::check_identifier("the value", text) {
            self.problem(key, error.to_string());
        } else if text.len() > length_max {
            self.problem(key, format!("has {} characters: use at most {length_max}", text.len()));
        }
    }

    /// A duration between two bounds; the default where nothing is written.
    pub(super) fn duration(
        &mut self,
        key: &str,
        text: Option<&str>,
        default: Duration,
        bounds: (Duration, Duration),
    ) -> Duration {
        let Some(text) = text else { return default };
        match parse_duration(text) {
            Ok(duration) if duration < bounds.0 || duration > bounds.1 => {
                let (least, most) = (super::duration::show(bounds.0), super::duration::show(bounds.1));
                self.problem(key, format!("{text} is out of bounds: use {least} to {most}"));
                default
            }
            Ok(duration) => duration,
            Err(error) => {
                self.problem(key, error.to_string());
                default
            }
        }
    }

    pub(super) fn count(&mut self, key: &str, count: Option<usize>, default: usize, bounds: (usize, usize)) -> usize {
        let count = count.unwrap_or(default);
        self.require(count >= bounds.0 && count <= bounds.1, key, || {
            format!("{count} is out of bounds: use {} to {}", bounds.0, bounds.1)
        });
        count
    }

    /// A secret, given in the file or as the name of an environment variable; exactly one of the two.
    pub(super) fn secret(
        &mut self,
        key: &str,
        direct: Option<SecretString>,
        variable: Option<&str>,
    ) -> Option<SecretString> {
        match (direct, variable) {
            (Some(secret), None) => Some(secret),
            (None, Some(variable)) => {
                let secret = (self.environment_variable)(variable).filter(|text| !text.is_empty());
                self.require(secret.is_some(), &format!("{key}_env"), || {
                    format!("environment variable {variable} is not set: set it, or write {key} instead")
                });
                secret.map(SecretString::from)
            }
            (None, None) => {
                self.problem(key, format!("missing: write {key}, or {key}_env with an environment variable's name"));
                None
            }
            (Some(_), Some(_)) => {
                self.problem(key, format!("written twice: keep one of {key} and {key}_env"));
                None
            }
        }
    }

    pub(super) fn finish<T>(self, file: &str, value: Option<T>) -> Result<T, ConfigError> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(ConfigError { file: file.to_owned(), problems: self.problems }),
        }
    }
}
