//! One conformance suite for every store: each sentence is a test of its own on a fresh, empty database.
//!
//! An engine joins with an [`Engine`] and one line, `store_suite!(path::to::fresh);`, where `fresh` is an async function that returns a
//! boxed engine. The database's clock is never waited for: due times lie far in the past or far in the future of `store.now()`.
//! Left out: what only one engine has, such as writes past the store; those are tested beside the engine.

pub(crate) mod backlog;
pub(crate) mod batches;
pub(crate) mod counters;
pub(crate) mod due;
pub(crate) mod evidence;
pub(crate) mod find;
pub(crate) mod fixture;
pub(crate) mod guards;
pub(crate) mod import;
pub(crate) mod inbox;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod over_refund;
pub(crate) mod pauses;
pub(crate) mod rules;
pub(crate) mod story;
pub(crate) mod submit;

use async_trait::async_trait;
use orchestrator::store::Store;
use std::sync::Arc;

/// A fresh database of one kind; it is removed when this is dropped.
#[async_trait]
pub(crate) trait Engine: Send + Sync {
    fn store(&self) -> Arc<dyn Store>;

    /// Registers one more generation of a lease service and returns its epoch, which is the current one from then on.
    async fn raise_epoch(&self) -> i64;
}

/// Writes every sentence out as a test of the engine that `$fresh` makes.
macro_rules! store_suite {
    ($fresh:path) => {
        #[test]
        fn random_sequences_are_answered_as_by_the_memory_store() {
            $crate::store_model::same_as_memory($fresh);
        }

        $crate::store_suite::sentences! { $fresh;
            submit {
                a_new_intent_is_created_with_its_reservation
                the_same_body_again_is_the_same_intent
                another_body_is_a_conflict
                a_payment_nobody_imported_is_unknown
                a_payment_at_another_place_is_a_mismatch
                an_intent_without_a_due_time_is_due_now
                one_batch_sees_its_own_intents_in_order
                one_of_fifty_parallel_submits_creates
                a_key_serves_one_intent
                large_amounts_read_back_equal
                an_amount_that_is_not_positive_leaves_nothing_behind
            }
            over_refund {
                more_than_is_left_is_refused
                one_batch_reserves_in_the_order_given
                parallel_refunds_never_exceed_the_capture
                two_at_once_fifty_times_have_one_winner_each
                what_was_charged_back_is_not_refundable
                one_key_with_other_content_refunds_once
                proof_beyond_the_capture_is_recorded
            }
            import {
                a_payment_is_inserted_once
                other_fields_are_a_conflict_and_change_nothing
                a_payment_of_the_provider_has_one_name
                one_batch_sees_its_own_payments
                counters_do_not_make_a_payment_another_one
            }
            due {
                creates_are_due_only_where_allowed
                what_lies_in_the_future_is_not_due
                an_open_step_is_due_when_its_session_is_not_live
                a_message_makes_due_only_while_nobody_holds
                a_message_wakes_a_final_intent
                oldest_comes_first_and_the_limit_holds
                other_providers_accounts_and_machines_are_left_alone
            }
            guards {
                the_fence_must_compare_as_the_guard_says
                the_row_must_be_as_it_was_read
                only_the_current_epoch_writes
                a_stale_token_is_named_before_anything_else
                a_new_epoch_beats_any_counter_of_an_old_one
                an_unknown_intent_has_moved
                a_holder_that_was_taken_over_writes_nothing
                losers_leave_winners_alone
            }
            rules {
                an_install_is_read_back_as_written
                a_row_that_breaks_a_rule_fails_the_whole_batch
                an_attempt_is_the_one_its_intent_has_open
                an_attempt_id_is_used_once
                ten_parallel_installs_have_one_winner
            }
            counters {
                counters_follow_states_for_every_pair
                a_batch_sums_its_winners_per_payment
            }
            evidence {
                an_outcome_is_recorded_with_its_attempt
                a_second_outcome_of_an_attempt_is_ignored
                one_change_settles_several_attempts
                every_outcome_reads_back_equal
                breaks_are_kept_in_order
            }
            ledger {
                a_success_posts_once
                a_reversal_posts_the_contra_entry
                a_transfer_must_fit_the_state
                debits_equal_credits_per_currency
            }
            inbox {
                a_source_id_is_stored_once
                a_message_for_an_unknown_intent_is_not_stored
                every_message_reads_back_in_order
                a_message_is_applied_exactly_once
                a_message_of_another_intent_is_not_ours_to_apply
                one_read_message_loses_the_whole_change
                of_two_readers_at_once_one_applies
            }
            find {
                any_id_a_person_has_finds_the_intent
                nothing_but_equal_ids_match
                the_newest_come_first_up_to_the_limit
            }
            list {
                filters_narrow
                pages_neither_lose_nor_repeat
                what_arrives_between_pages_disturbs_none
                a_cursor_of_nobody_is_an_error
            }
            story {
                everything_on_record_is_told_in_order
                an_unknown_intent_has_no_story
                files_come_in_the_order_asked
            }
            backlog {
                states_are_counted_with_their_oldest
                an_empty_store_has_no_backlog
            }
            pauses {
                a_pause_is_shown_until_resumed
                pausing_again_replaces_the_reason
            }
            batches {
                nothing_in_is_nothing_out
                a_full_batch_passes
                more_than_a_batch_is_refused
                no_call_returns_more_than_a_batch
            }
        }
    };
}
pub(crate) use store_suite;

macro_rules! sentences {
    ($fresh:path; $($topic:ident { $($sentence:ident)* })*) => { $(
        mod $topic {
            #[allow(unused_imports, reason = "the path of the engine may be relative to the caller or not")]
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $sentence() {
                    let fixture = $crate::store_suite::fixture::Fixture::new($fresh().await).await;
                    $crate::store_suite::$topic::$sentence(&fixture).await;
                }
            )*
        }
    )* };
}
pub(crate) use sentences;
