//! Finding our refund. By its id once that is known; before, among all refunds of its payment by `metadata[intent_id]`.
//!
//! Absent is said only after every page was read. Whatever breaks the reading off is unknown (or not executed, when Stripe would
//! not start on it): half a list proves nothing.

use super::answer;
use super::body::{ErrorBody, PageBody, RefundBody, Text};
use super::transport::{Answer, OBJECT_MAX, Transport};
use jobs::refund::capabilities::WireAmount;
use jobs::refund::intent::Intent;
use jobs::refund::outcome::{Outcome, PspRefund};
use reqwest::Request;

/// Stripe's largest page.
const PAGE_LIMIT: &str = "100";

/// A page of 100 refunds with ample metadata.
const PAGE_MAX: usize = 4 * 1024 * 1024;

/// Ten thousand refunds of one payment are more than any payment has.
const PAGES_MAX: usize = 100;

/// The parameter that names this payment; `None` when it is none of Stripe's.
pub(super) fn payment_parameter(payment: &str) -> Option<&'static str> {
    match payment.split_once('_')? {
        (_, "") => None,
        ("pi", _) => Some("payment_intent"),
        ("ch" | "py", _) => Some("charge"),
        _ => None,
    }
}

pub(super) struct Lookup<'a> {
    transport: &'a Transport,
    intent: &'a Intent,
    wire_amounts: &'a [WireAmount],
}

/// What one page adds.
struct Page {
    hits: Vec<PspRefund>,
    /// Where the next page begins; absent on the last.
    after: Option<String>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(transport: &'a Transport, intent: &'a Intent, wire_amounts: &'a [WireAmount]) -> Self {
        Self { transport, intent, wire_amounts }
    }

    pub(super) async fn run(&self) -> Outcome {
        if let Some(id) = &self.intent.psp_refund_ref
            && let Some(outcome) = self.by_id(id).await.unwrap_or_else(Some)
        {
            return outcome;
        }
        self.by_reference().await.unwrap_or_else(|outcome| outcome)
    }

    /// `None` when there is no such refund.
    async fn by_id(&self, id: &str) -> Result<Option<Outcome>, Outcome> {
        let answer = self.read(self.transport.read_request(id, self.intent), OBJECT_MAX).await?;
        match answer.status {
            200 => {
                let body = serde_json::from_slice::<RefundBody<'_>>(&answer.body);
                let body = body.map_err(|error| answer::unreadable(&error))?;
                if body.id.as_ref().map(Text::as_str) != Some(id) {
                    return Err(unknown("another refund is shown than the one asked for"));
                }
                let found = |refund| Outcome::Found { refunds: vec![refund] };
                Ok(Some(answer::shown(&body, &self.intent.intent_id, self.wire_amounts, found)))
            }
            404 => Ok(None),
            _ => Err(without_reading(&answer)),
        }
    }

    async fn by_reference(&self) -> Result<Outcome, Outcome> {
        let payment = &*self.intent.psp_payment_ref;
        let parameter = payment_parameter(payment).ok_or_else(|| unknown("the payment is none of Stripe's"))?;
        let (mut refunds, mut after) = (Vec::new(), None::<String>);
        for _ in 0..PAGES_MAX {
            let mut parameters = vec![(parameter, payment), ("limit", PAGE_LIMIT)];
            parameters.extend(after.as_deref().map(|after| ("starting_after", after)));
            let answer = self.read(self.transport.list_request(&parameters, self.intent), PAGE_MAX).await?;
            if answer.status != 200 {
                return Err(without_reading(&answer));
            }
            let page = self.page(&answer.body)?;
            for hit in page.hits {
                // A list that shifts while it is read may show the same refund on two pages.
                if refunds.iter().all(|known: &PspRefund| known.psp_refund_ref != hit.psp_refund_ref) {
                    refunds.push(hit);
                }
            }
            if page.after.is_none() {
                return Ok(if refunds.is_empty() { Outcome::Absent } else { Outcome::Found { refunds } });
            }
            if page.after == after {
                return Err(unknown("the list does not move on"));
            }
            after = page.after;
        }
        Err(unknown("the payment has more refunds than are read"))
    }

    async fn read(&self, request: Result<Request, String>, body_max: usize) -> Result<Answer, Outcome> {
        let request = request.map_err(answer::nothing_sent)?;
        self.transport.send(request, body_max).await.map_err(Outcome::from)
    }

    fn page(&self, body: &[u8]) -> Result<Page, Outcome> {
        let page = serde_json::from_slice::<PageBody<'_>>(body).map_err(|error| answer::unreadable(&error))?;
        let ours = page.data.iter().filter(|refund| refund.reference() == Some(self.intent.intent_id.as_str()));
        let hits = ours.map(|refund| refund.to_refund(self.wire_amounts)).collect::<Result<_, _>>();
        let last = page.data.last().and_then(|refund| refund.id.as_ref()).map(Text::as_str);
        let after = match (page.has_more, last) {
            (false, _) => None,
            (true, Some(last)) => Some(last.to_owned()),
            (true, None) => return Err(unknown("a page that is not the last shows no refund to go on from")),
        };
        Ok(Page { hits: hits.map_err(|reason| unknown(&reason))?, after })
    }
}

fn without_reading(answer: &Answer) -> Outcome {
    answer::without_result(answer, ErrorBody::read(&answer.body).as_ref())
}

fn unknown(reason: &str) -> Outcome {
    Outcome::Unknown { reason: answer::bounded(reason) }
}
