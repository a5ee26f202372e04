//! Scripted gaps between the report and the book, applied to the lines of refunds.
//!
//! A gap's count limits how many lines it hits, in the order in which the money moved, so it hits the same ones each time.

use super::lines::Line;
use crate::faults::{CallKind, Gap, Match, Seen};

#[derive(Debug)]
pub(crate) struct Gaps {
    /// Match, lines it still may hit (0 in a script: all), lines still to skip.
    gaps: Vec<(Match, Option<u32>, u32, Gap)>,
}

impl Gaps {
    pub(crate) fn new(scripted: Vec<(Match, u32, Gap)>) -> Self {
        let gap = |(mut matches, count, gap): (Match, u32, Gap)| {
            matches.call = CallKind::Any;
            let skip = matches.nth.unwrap_or(1).saturating_sub(1);
            (matches, (count != 0).then_some(count), skip, gap)
        };
        Self { gaps: scripted.into_iter().map(gap).collect() }
    }

    /// The lines that the report has in place of this one.
    pub(crate) fn apply(&mut self, line: Line) -> Vec<Line> {
        if !line.is_refund {
            return vec![line];
        }
        let mut lines = vec![line];
        for (matches, left, skip, gap) in &mut self.gaps {
            let Some(line) = lines.first() else { break };
            let seen = Seen {
                kind: CallKind::Any,
                intent: Some(&line.reference).filter(|r| !r.is_empty()).map(String::as_str),
                payment: [Some(&line.payment_intent), Some(&line.charge)],
                currency: Some(line.currency.as_str()),
                event: None,
                repeat: false,
            };
            if *left == Some(0) || !matches.fits(&seen) {
                continue;
            }
            if *skip > 0 {
                *skip -= 1;
                continue;
            }
            *left = left.map(|left| left - 1);
            spoil(&mut lines, gap);
        }
        lines
    }
}

fn spoil(lines: &mut Vec<Line>, gap: &Gap) {
    match gap {
        Gap::Missing => lines.clear(),
        Gap::Doubled => lines.extend(lines.first().cloned()),
        Gap::Extra => {
            let mut extra = lines[0].clone();
            for id in [&mut extra.transaction, &mut extra.source, &mut extra.refund] {
                id.push_str("extra");
            }
            extra.reference.clear();
            lines.push(extra);
        }
        Gap::AmountOff { by } => lines[0].gross -= by,
        Gap::Late { by_s } => lines[0].reported_s = lines[0].reported_s.saturating_add_unsigned(*by_s),
        Gap::UnknownType { category } => lines[0].category.clone_from(category),
    }
}
