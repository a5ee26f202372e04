//! PostgreSQL as a generation of lease service: its timeline, and the system it belongs to where the role may read that.
//!
//! A promotion or a recovery to a point in time starts another timeline; a dump restored elsewhere is another system.

use std::fmt;

/// `timeline 00000001 of 7714171498711133492`, or without the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) timeline: String,
    pub(super) system: Option<String>,
}

impl Generation {
    /// From the register; `None` if it was not written by this code.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("timeline ")?;
        Some(match rest.split_once(" of ") {
            Some((timeline, system)) => Self { timeline: timeline.to_owned(), system: Some(system.to_owned()) },
            None => Self { timeline: rest.to_owned(), system: None },
        })
    }

    /// Roles differ in what they may read, so a system that one side does not know makes no difference.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let systems_differ = matches!((&self.system, &other.system), (Some(one), Some(two)) if one != two);
        self.timeline == other.timeline && !systems_differ
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timeline {}", self.timeline)?;
        match &self.system {
            Some(system) => write!(f, " of {system}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_another_when_the_timeline_or_a_known_system_is() {
        let check = |one: &str, two: &str, same: bool| {
            let (one, two) = (Generation::parse(one).unwrap(), Generation::parse(two).unwrap());
            assert_eq!(one.is_same(&two), same, "{one} and {two}");
        };
        check("timeline 00000001 of 77", "timeline 00000001 of 77", true);
        check("timeline 00000001 of 77", "timeline 00000001", true);
        check("timeline 00000001", "timeline 00000001 of 78", true);
        check("timeline 00000001 of 77", "timeline 00000001 of 78", false);
        check("timeline 00000001 of 77", "timeline 00000002 of 77", false);
        check("timeline 00000001", "timeline 0000000A", false);
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in ["timeline 00000001 of 77", "timeline 00000001"] {
            assert_eq!(Generation::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Generation::parse("b1946ac9-2493-4d27-9e7d-1f0a6c1b2d3e"), None);
    }
}
