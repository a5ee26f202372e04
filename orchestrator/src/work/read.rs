//! Reads held intents: all at once, and one by one when some can not be read.
//!
//! One row that this code does not understand, such as a message of a later release or something typed at a SQL prompt, must not hold
//! up the rest. It is let go, remembered, and read alone from then on until it makes sense.

use super::Shared;
use super::hold::Held;
use super::write;
use crate::store::{Loaded, StoreError};
use jobs::ids::IntentId;
use std::sync::Arc;

/// What was read and who holds it. The others are let go; nothing at all is read when the database does not answer.
pub(super) async fn read(shared: &Arc<Shared>, holds: Vec<Held>) -> Option<(Loaded, Vec<Held>)> {
    let (suspects, mut holds): (Vec<_>, Vec<_>) =
        holds.into_iter().partition(|held| shared.poison.is_unreadable(&held.intent_id));
    let mut loaded = None;
    if !holds.is_empty() {
        let ids: Vec<IntentId> = holds.iter().map(|held| held.intent_id.clone()).collect();
        match shared.store.load(&ids).await {
            Ok(read) => loaded = Some(read),
            Err(error @ StoreError::Unavailable(_)) => {
                tracing::warn!(error = %crate::report(&error), count = holds.len(), "cannot read held refunds; letting them go");
                holds.extend(suspects);
                write::let_go(shared, holds).await;
                return None;
            }
            Err(error) => {
                tracing::error!(count = holds.len(), error = %crate::report(&error), "a batch can not be read; reading its rows one by one");
                let (read, good) = one_by_one(shared, holds).await;
                (loaded, holds) = (read, good);
            }
        }
    }
    let (read, good) = one_by_one(shared, suspects).await;
    holds.extend(good);
    match (&mut loaded, read) {
        (Some(loaded), Some(read)) => loaded.files.extend(read.files),
        (None, read) => loaded = read,
        (Some(_), None) => {}
    }
    Some((loaded?, holds))
}

async fn one_by_one(shared: &Arc<Shared>, holds: Vec<Held>) -> (Option<Loaded>, Vec<Held>) {
    let mut loaded: Option<Loaded> = None;
    let mut good = Vec::with_capacity(holds.len());
    let mut bad = Vec::new();
    for held in holds {
        let read = shared.store.load(std::slice::from_ref(&held.intent_id)).await;
        let unreadable = match &read {
            Ok(_) => false,
            Err(StoreError::Unavailable(_)) => shared.poison.is_unreadable(&held.intent_id),
            Err(_) => true,
        };
        let is_news = shared.poison.set_unreadable(&held.intent_id, unreadable);
        match read {
            Ok(mut read) => {
                if let Some(before) = loaded.take() {
                    read.files.extend(before.files);
                }
                loaded = Some(read);
                good.push(held);
            }
            Err(error) => {
                if is_news {
                    tracing::error!(intent_id = %held.intent_id, error = %crate::report(&error), "this refund can not be read and is left alone");
                }
                bad.push(held);
            }
        }
    }
    write::let_go(shared, bad).await;
    (loaded, good)
}
