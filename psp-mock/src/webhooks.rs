//! Delivery of events: signed as Stripe signs, retried a few times, and spoiled where a fault says so.
//!
//! The events of one change go out one after the other; changes go out side by side, so there is no order between them. The
//! timestamp in the signature is that of the attempt. Left out: Stripe's three days of retries.

use crate::faults::WebhookFault;
use crate::server::Shared;
use crate::state::events::{Event, Group};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Groups that may wait for delivery; more are dropped and counted.
pub(crate) const WAITING_MOST: usize = 100_000;

/// Deliveries under way at a time.
const DELIVERIES_MOST: usize = 64;

/// How long the receiver may take for its answer.
const ANSWER_LONGEST: Duration = Duration::from_secs(10);

/// Sends what comes in, until it is dropped; with it all deliveries under way end.
pub(crate) async fn deliver(shared: Arc<Shared>, mut groups: mpsc::Receiver<Group>) {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a crypto provider is already installed");
    }
    let client = match reqwest::Client::builder().timeout(ANSWER_LONGEST).build() {
        Ok(client) => client,
        Err(error) => return tracing::error!(%error, "no webhook can be sent"),
    };
    let permits = Arc::new(Semaphore::new(DELIVERIES_MOST));
    let mut under_way = JoinSet::new();
    while let Some(group) = groups.recv().await {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        while under_way.try_join_next().is_some() {}
        let (shared, client) = (shared.clone(), client.clone());
        under_way.spawn(async move {
            send_group(&shared, &client, group).await;
            drop(permit);
        });
    }
}

async fn send_group(shared: &Shared, client: &reqwest::Client, mut group: Group) {
    let held = group.events.iter().find_map(|event| match event.fault {
        Some(WebhookFault::Reordered { hold_ms }) => Some(hold_ms),
        _ => None,
    });
    if let Some(hold_ms) = held {
        group.events.reverse();
        tokio::time::sleep(Duration::from_millis(hold_ms)).await;
    }
    for event in &group.events {
        let times = match event.fault {
            Some(WebhookFault::Withheld) => 0,
            Some(WebhookFault::Duplicate { times }) => times,
            _ => 1,
        };
        for _ in 0..times {
            send_until_taken(shared, client, &group, event).await;
        }
    }
}

async fn send_until_taken(shared: &Shared, client: &reqwest::Client, group: &Group, event: &Event) {
    let waits = &shared.config.webhook_retries;
    for attempt in 0..=waits.len() {
        let mut request = client.post(&group.endpoint.url).header("content-type", "application/json; charset=utf-8");
        let now_s = shared.clock.now_ms() / 1000;
        request = match event.fault {
            Some(WebhookFault::Unsigned) => request,
            Some(WebhookFault::Forged) => {
                request.header("stripe-signature", signature("whsec_forged", now_s, &event.body))
            }
            _ => request.header("stripe-signature", signature(&group.endpoint.secret, now_s, &event.body)),
        };
        match request.body(event.body.clone()).send().await {
            Ok(answer) if answer.status().is_success() => {
                shared.lock().tallies.totals.webhooks_delivered += 1;
                return;
            }
            Ok(answer) => tracing::debug!(status = answer.status().as_u16(), attempt, "event was not taken"),
            Err(error) => tracing::debug!(%error, attempt, "event could not be delivered"),
        }
        if let Some(wait) = waits.get(attempt) {
            tokio::time::sleep(*wait).await;
        }
    }
    shared.lock().tallies.totals.webhooks_failed += 1;
}

/// The `Stripe-Signature` header: HMAC-SHA256 over `timestamp.body`, in hex.
fn signature(secret: &str, now_s: i64, body: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = format!("t={now_s},v1=");
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
        mac.update(format!("{now_s}.").as_bytes());
        mac.update(body);
        for byte in mac.finalize().into_bytes() {
            write!(text, "{byte:02x}").unwrap_or_default();
        }
    }
    text
}
