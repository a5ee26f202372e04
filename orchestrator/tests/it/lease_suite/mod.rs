//! One conformance suite for every lease service: each sentence is a test of its own on a fresh, empty service.
//!
//! A service joins with a [`Service`] and one line, `lease_suite!(path::to::fresh);`. Sessions live long unless a sentence is about
//! their end; then the service says how that end is reached: a simulated clock is advanced, a real one is awaited by looking.
//! Left out: what only one service has (restarts, timelines, boots); that is tested beside the service.

pub(crate) mod claims;
pub(crate) mod epochs;
pub(crate) mod releases;
pub(crate) mod sessions;

use async_trait::async_trait;
use jobs::ids::{SessionId, Token};
use orchestrator::lease::{Claim, Hold, Leases, ResourceKey};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A TTL that no sentence outlives.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// Most of it.
pub(crate) const MOST_OF_LONG: Duration = Duration::from_secs(540);

/// A TTL that a sentence waits for.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// A fresh lease service of one kind; it is removed when this is dropped.
#[async_trait]
pub(crate) trait Service: Send + Sync {
    fn leases(&self) -> Arc<dyn Leases>;

    /// Returns when a session that was opened with [`SHORT`] and not renewed is over.
    async fn outlive(&self, session: SessionId);

    /// Brings a session that was opened or renewed with [`LONG`] to within a minute of its end.
    async fn pass_most_of_long(&self, session: SessionId);

    /// Registers a new generation and returns its epoch.
    async fn raise_epoch(&self) -> i64;
}

/// A random identity.
pub(crate) fn new_session() -> SessionId {
    SessionId(Uuid::new_v4())
}

pub(crate) async fn open(leases: &dyn Leases, ttl: Duration) -> SessionId {
    let session = new_session();
    let grant = leases.open_session(session, "suite", ttl).await.unwrap();
    assert_eq!((grant.session, grant.ttl), (session, ttl));
    session
}

pub(crate) fn keys<const N: usize>(names: [&str; N]) -> Vec<ResourceKey> {
    names.into_iter().map(|name| ResourceKey(format!("intent/{name}"))).collect()
}

pub(crate) async fn claim<const N: usize>(leases: &dyn Leases, session: SessionId, names: [&str; N]) -> [Claim; N] {
    leases.claim(session, &keys(names)).await.unwrap().try_into().unwrap()
}

/// Claims one key that must be free.
pub(crate) async fn win(leases: &dyn Leases, session: SessionId, name: &str) -> Hold {
    let [answer] = claim(leases, session, [name]).await;
    Hold { key: keys([name])[0].clone(), token: token(answer) }
}

#[track_caller]
pub(crate) fn token(claim: Claim) -> Token {
    match claim {
        Claim::Held(token) => token,
        Claim::Taken => panic!("the key is taken"),
    }
}

/// Writes every sentence out as a test of the service that `$fresh` makes.
macro_rules! lease_suite {
    ($fresh:path) => {
        $crate::lease_suite::sentences! { $fresh;
            claims {
                of_two_sessions_one_gets_the_key
                the_same_key_twice_is_taken_the_second_time
                a_key_of_this_very_session_is_taken_too
                answers_come_in_the_order_of_the_keys
                tokens_of_a_key_rise_whatever_ended_the_hold
                of_fifty_tasks_on_overlapping_keys_one_wins_each
                a_full_claim_passes_and_a_larger_one_is_refused
                nothing_asked_is_nothing_answered
            }
            releases {
                a_released_key_is_free
                an_old_token_leaves_the_new_hold_alone
                another_sessions_hold_can_not_be_released
                releasing_twice_is_not_an_error
                holds_list_what_the_session_has
            }
            sessions {
                an_expired_session_can_neither_claim_nor_renew
                what_an_expired_session_held_is_free
                a_renewed_session_lives_on
                a_holder_that_believes_too_long_disturbs_nobody
                closing_frees_at_once
                closing_twice_is_not_an_error
                an_identity_opens_one_session
                a_session_nobody_opened_is_lost
                live_sessions_are_listed
            }
            epochs {
                a_new_epoch_ends_all_sessions
                a_new_epochs_tokens_beat_all_older_ones
            }
        }
    };
}
pub(crate) use lease_suite;

macro_rules! sentences {
    ($fresh:path; $($topic:ident { $($sentence:ident)* })*) => { $(
        mod $topic {
            #[allow(unused_imports, reason = "the path of the service may be relative to the caller or not")]
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $sentence() {
                    let service = $fresh().await;
                    $crate::lease_suite::$topic::$sentence(&*service).await;
                }
            )*
        }
    )* };
}
pub(crate) use sentences;
