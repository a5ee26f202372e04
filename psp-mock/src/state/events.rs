//! Events for the configured endpoint, written at the moment of the change and handed to the sender as one group per change.
//!
//! Without an endpoint nothing is built. A full queue drops the group and counts it: the book must not wait for a slow receiver.

use super::State;
use crate::config::Webhook;
use crate::faults::{CallKind, Seen, WebhookFault};
use crate::wire::objects::{API_VERSION, EventData, EventObject, EventRequest};
use axum::body::Bytes;
use serde::Serialize;
use std::sync::Arc;

/// The events of one change, to be delivered one after the other.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) endpoint: Arc<Webhook>,
    pub(crate) events: Vec<Event>,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) body: Bytes,
    pub(crate) fault: Option<WebhookFault>,
}

impl State {
    pub(crate) fn emit_refund(&mut self, at: u32, kinds: &[&'static str], now_ms: i64) {
        let Some(endpoint) = self.webhook.clone() else { return };
        let events = kinds.iter().map(|kind| self.event(at, kind, now_ms)).collect();
        if self.outgoing.try_send(Group { endpoint, events }).is_err() {
            self.tallies.totals.webhooks_failed += kinds.len() as u64;
        }
    }

    fn event(&mut self, at: u32, kind: &'static str, now_ms: i64) -> Event {
        let id = self.ids.next("evt");
        let refund = &self.refunds[at];
        let payment = &self.payments[refund.payment];
        let body = if kind.starts_with("charge.") {
            event_json(&id, kind, refund.key.as_deref(), now_ms, self.charge_object(payment))
        } else {
            event_json(&id, kind, refund.key.as_deref(), now_ms, self.refund_object(refund))
        };
        let intent = refund.metadata.get(&self.reference_key);
        let seen = Seen {
            kind: CallKind::Webhook,
            intent,
            payment: [payment.intent.as_deref(), payment.charge.as_deref()],
            currency: Some(refund.currency.as_str()),
            event: Some(kind),
            repeat: false,
        };
        let name = format!("{kind}/{}", intent.unwrap_or(&refund.id));
        Event { fault: self.faults.take_webhook(&seen, &name), body: body.into() }
    }
}

fn event_json(id: &str, kind: &'static str, key: Option<&str>, now_ms: i64, object: impl Serialize) -> Vec<u8> {
    let event = EventObject {
        id,
        object: "event",
        api_version: API_VERSION,
        created: now_ms / 1000,
        data: EventData { object },
        livemode: false,
        pending_webhooks: 1,
        request: EventRequest { id: None, idempotency_key: key },
        kind,
    };
    serde_json::to_vec(&event).unwrap_or_default()
}
