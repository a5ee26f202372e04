//! How a call looks to the faults: which intent, payment and currency it is about, whichever of them it names.

use super::State;
use super::payments::Face;
use crate::faults::{CallKind, Effect, Seen};

/// The object a call names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named<'a> {
    Nothing,
    Refund(&'a str),
    Payment(&'a str),
}

impl State {
    /// Uses up the fault that this call meets, if any.
    pub(crate) fn meet(
        &mut self,
        kind: CallKind,
        named: Named<'_>,
        intent: Option<&str>,
        key: Option<&str>,
        repeat: bool,
    ) -> Vec<Effect> {
        let creates = intent.and_then(|intent| self.tallies.of(intent)).map_or(0, |counters| counters.creates_received);
        let refund = match named {
            Named::Refund(id) => self.refund_by_id.get(id).map(|at| &self.refunds[*at]),
            _ => None,
        };
        let payment = match named {
            Named::Payment(id) => self.payment_named(id).map(|at| &self.payments[at]),
            _ => refund.map(|refund| &self.payments[refund.payment]),
        };
        let ids = match (payment, named) {
            (Some(payment), _) => [payment.id(Face::Intent).map(|id| &**id), payment.id(Face::Charge).map(|id| &**id)],
            (None, Named::Payment(id)) => [Some(id), None],
            (None, _) => [None, None],
        };
        let currency = refund.map(|refund| refund.currency).or(payment.map(|payment| payment.currency));
        let intent = intent.or_else(|| refund.and_then(|refund| refund.metadata.get(&self.reference_key)));
        let seen = Seen {
            kind,
            intent,
            payment: ids,
            currency: currency.as_ref().map(|currency| currency.as_str()),
            event: None,
            repeat,
        };
        // A retry under the same name must draw anew, or a fault drawn once would never end.
        let calls = self.tallies.totals.calls_received;
        let name = match intent.or(key) {
            Some(name) if creates > 0 => format!("{kind:?}/{name}/{creates}"),
            name => format!("{kind:?}/{}/{calls}", name.unwrap_or_default()),
        };
        self.faults.take(&seen, &name)
    }
}
