//! Whether a change wins, decided on the row as it is under the file's write lock. No database here.

use crate::store::change::{Change, FenceGuard, WriteResult};
use jobs::ids::{AttemptId, Token};
use jobs::refund::state::State;
use std::collections::BTreeSet;

/// What of a row decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) payment_id: String,
    pub(super) amount_minor: i64,
    pub(super) state: State,
    pub(super) version: i64,
    pub(super) fence: Token,
    pub(super) open_attempt: Option<AttemptId>,
    /// Ids of its unread inbox rows.
    pub(super) unread: BTreeSet<i64>,
}

/// A stale token is told before a moved state: whoever holds an old token must stop, whatever the row says.
pub(super) fn judge(standing: Option<&Standing>, change: &Change, current_epoch: Option<i64>) -> WriteResult {
    if Some(change.token.epoch) != current_epoch {
        return WriteResult::StaleToken;
    }
    let Some(standing) = standing else { return WriteResult::StateMoved };
    if standing.fence > change.token {
        return WriteResult::StaleToken;
    }
    let fence_fits = match change.fence_guard {
        FenceGuard::Below => standing.fence < change.token,
        FenceGuard::Equal => standing.fence == change.token,
    };
    let named: BTreeSet<i64> = change.inbox_applied.iter().map(|applied| applied.inbox_id).collect();
    let fits = fence_fits
        && standing.version == change.expected_version
        && standing.open_attempt == change.expected_open_attempt
        && named.len() == change.inbox_applied.len()
        && named.is_subset(&standing.unread);
    if fits { WriteResult::Written } else { WriteResult::StateMoved }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::change::InboxApplied;
    use jobs::ids::IntentId;
    use jobs::refund::intent::NextAction;
    use uuid::Uuid;

    const HELD: Token = Token { epoch: 2, counter: 7 };

    fn standing() -> Standing {
        Standing {
            payment_id: "p-1".to_owned(),
            amount_minor: 5,
            state: State::Unknown,
            version: 4,
            fence: Token { epoch: 2, counter: 5 },
            open_attempt: None,
            unread: BTreeSet::from([1, 2]),
        }
    }

    fn change() -> Change {
        Change {
            intent_id: IntentId::from_stored("r-1".to_owned()),
            expected_version: 4,
            token: HELD,
            fence_guard: FenceGuard::Below,
            expected_open_attempt: None,
            state: State::Unknown,
            state_reason: None,
            psp_refund_ref: None,
            holder_session: None,
            open_attempt: None,
            next_action: NextAction::Lookup,
            next_action_at: None,
            rung: 0,
            attempt: None,
            outcomes: Vec::new(),
            transfer: None,
            breaks: Vec::new(),
            inbox_applied: Vec::new(),
        }
    }

    fn check(alter: impl FnOnce(&mut Standing, &mut Change), expected: WriteResult) {
        let (mut standing, mut change) = (standing(), change());
        alter(&mut standing, &mut change);
        assert_eq!(judge(Some(&standing), &change, Some(2)), expected, "{standing:?} {change:?}");
    }

    fn named(ids: &[i64]) -> Vec<InboxApplied> {
        ids.iter().map(|id| InboxApplied { inbox_id: *id, refused_because: None }).collect()
    }

    #[test]
    fn a_change_wins_only_on_the_row_it_was_planned_for() {
        use WriteResult::{StaleToken, StateMoved, Written};
        check(|_, _| {}, Written);
        check(|row, _| row.fence = HELD, StateMoved);
        check(|row, _| row.fence.counter = 8, StaleToken);
        check(|row, change| (row.fence, change.fence_guard) = (HELD, FenceGuard::Equal), Written);
        check(|_, change| change.fence_guard = FenceGuard::Equal, StateMoved);
        check(|row, _| row.version = 5, StateMoved);
        check(|row, _| (row.version, row.fence.counter) = (5, 8), StaleToken);
        check(|row, _| row.open_attempt = Some(AttemptId(Uuid::from_u128(1))), StateMoved);
        check(|_, change| change.expected_open_attempt = Some(AttemptId(Uuid::from_u128(1))), StateMoved);
        check(|_, change| change.token.epoch = 1, StaleToken);
        check(|_, change| change.token.epoch = 3, StaleToken);
    }

    #[test]
    fn a_change_wins_only_while_what_it_read_is_unread() {
        use WriteResult::{StateMoved, Written};
        check(|_, change| change.inbox_applied = named(&[2, 1]), Written);
        check(|_, change| change.inbox_applied = named(&[3]), StateMoved);
        check(|_, change| change.inbox_applied = named(&[1, 1]), StateMoved);
    }

    #[test]
    fn nothing_wins_without_a_registered_epoch_or_a_row() {
        assert_eq!(judge(Some(&standing()), &change(), None), WriteResult::StaleToken);
        assert_eq!(judge(None, &change(), Some(2)), WriteResult::StateMoved);
    }
}
