//! Stripe's list parameters and pages: newest first, cursors by object id, `has_more`.

use super::{ApiError, Form};

const LIMIT_DEFAULT: i64 = 10;
const LIMIT_MOST: i64 = 100;

/// What a list call asks for, before its cursor is looked up.
#[derive(Debug)]
pub(crate) struct PageQuery {
    pub(crate) limit: usize,
    cursor: Option<Cursor<String>>,
    created: [Option<i64>; 2],
}

/// Where a page begins.
#[derive(Clone, Debug)]
pub(crate) enum Cursor<T> {
    /// Older than this one.
    StartingAfter(T),
    /// Newer than this one.
    EndingBefore(T),
}

/// One page of positions, newest first.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) positions: Vec<u32>,
    pub(crate) has_more: bool,
}

impl PageQuery {
    pub(crate) fn parse(form: &Form) -> Result<Self, ApiError> {
        let limit = form.integer("limit")?.unwrap_or(LIMIT_DEFAULT);
        if !(1..=LIMIT_MOST).contains(&limit) {
            return Err(ApiError::invalid(format!("Invalid limit: must be between 1 and {LIMIT_MOST}.")).on("limit"));
        }
        let cursor = match (form.text("starting_after"), form.text("ending_before")) {
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid("You cannot parameterize both starting_after and ending_before."));
            }
            (Some(id), None) => Some(Cursor::StartingAfter(id.to_owned())),
            (None, Some(id)) => Some(Cursor::EndingBefore(id.to_owned())),
            (None, None) => None,
        };
        Ok(Self { limit: limit as usize, cursor, created: created_range(form)? })
    }

    /// The cursor's position, as `find` tells it by id and the parameter's name.
    pub(crate) fn cursor_at<F>(&self, find: F) -> Result<Option<Cursor<u32>>, ApiError>
    where
        F: Fn(&str, &'static str) -> Result<u32, ApiError>,
    {
        Ok(match &self.cursor {
            None => None,
            Some(Cursor::StartingAfter(id)) => Some(Cursor::StartingAfter(find(id, "starting_after")?)),
            Some(Cursor::EndingBefore(id)) => Some(Cursor::EndingBefore(find(id, "ending_before")?)),
        })
    }

    /// Whether an object of that second is asked for.
    pub(crate) fn covers(&self, created_s: i64) -> bool {
        let [from, to] = self.created;
        from.is_none_or(|from| created_s >= from) && to.is_none_or(|to| created_s <= to)
    }
}

/// `created=T` or `created[gt|gte|lt|lte]=T` as an inclusive range.
fn created_range(form: &Form) -> Result<[Option<i64>; 2], ApiError> {
    let exact = form.integer("created")?;
    let (mut from, mut to) = (exact, exact);
    for (bound, text) in form.nested("created") {
        let invalid =
            |_| ApiError::invalid(format!("Invalid integer: {text}")).coded("parameter_invalid_integer").on("created");
        let at: i64 = text.parse().map_err(invalid)?;
        let later = |at: i64| Some(from.map_or(at, |from| from.max(at)));
        let earlier = |at: i64| Some(to.map_or(at, |to| to.min(at)));
        match bound {
            "gt" => from = later(at.saturating_add(1)),
            "gte" => from = later(at),
            "lt" => to = earlier(at.saturating_sub(1)),
            "lte" => to = earlier(at),
            other => {
                return Err(ApiError::invalid(format!("Received unknown parameter: created[{other}]")).on("created"));
            }
        }
    }
    Ok([from, to])
}

/// Ascending positions (oldest first) that a page is cut out of.
#[derive(Debug)]
pub(crate) enum Candidates<'a> {
    /// All positions below this one.
    Below(u32),
    These(&'a [u32]),
}

impl Candidates<'_> {
    /// How many candidates are smaller than `at`.
    fn rank(&self, at: u32) -> usize {
        match self {
            Self::Below(end) => at.min(*end) as usize,
            Self::These(positions) => positions.partition_point(|p| *p < at),
        }
    }

    fn get(&self, rank: usize) -> u32 {
        match self {
            Self::Below(_) => rank as u32,
            Self::These(positions) => positions[rank],
        }
    }

    /// One page of those that `keep` lets through.
    pub(crate) fn page(&self, cursor: Option<&Cursor<u32>>, limit: usize, keep: impl Fn(u32) -> bool) -> Page {
        let (wanted, end) = (limit + 1, self.rank(u32::MAX));
        let older_than =
            |rank: usize| (0..rank).rev().map(|r| self.get(r)).filter(|at| keep(*at)).take(wanted).collect();
        let mut positions: Vec<u32> = match cursor {
            None => older_than(end),
            Some(Cursor::StartingAfter(at)) => older_than(self.rank(*at)),
            Some(Cursor::EndingBefore(at)) => {
                (self.rank(at + 1)..end).map(|r| self.get(r)).filter(|at| keep(*at)).take(wanted).collect()
            }
        };
        let has_more = positions.len() > limit;
        positions.truncate(limit);
        if matches!(cursor, Some(Cursor::EndingBefore(_))) {
            positions.reverse();
        }
        Page { positions, has_more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_newest_first_in_both_directions() {
        type Case<'a> = (Option<Cursor<u32>>, usize, &'a [u32], bool);
        let cases: &[Case<'_>] = &[
            (None, 2, &[4, 3], true),
            (None, 9, &[4, 3, 2, 1, 0], false),
            (Some(Cursor::StartingAfter(3)), 2, &[2, 1], true),
            (Some(Cursor::StartingAfter(0)), 2, &[], false),
            (Some(Cursor::EndingBefore(1)), 2, &[3, 2], true),
            (Some(Cursor::EndingBefore(2)), 2, &[4, 3], false),
        ];
        for (cursor, limit, expected, has_more) in cases {
            for candidates in [Candidates::Below(5), Candidates::These(&[0, 1, 2, 3, 4])] {
                let page = candidates.page(cursor.as_ref(), *limit, |_| true);
                assert_eq!((&page.positions[..], page.has_more), (*expected, *has_more), "{cursor:?} {limit}");
            }
        }
    }

    #[test]
    fn created_bounds_are_read_as_an_inclusive_range() {
        for (form, inside, outside) in [
            ("created=5", 5, 6),
            ("created[gt]=5", 6, 5),
            ("created[gte]=5", 5, 4),
            ("created[lt]=5", 4, 5),
            ("created[lte]=5", 5, 6),
        ] {
            let query = PageQuery::parse(&Form::parse(form.as_bytes()).expect("parses")).expect("is valid");
            assert!(query.covers(inside) && !query.covers(outside), "{form}");
        }
    }
}
