//! What a run of `dev` came to, as scripts read it: counts by state, by the mock PSP's own book, and by the ledger.

use super::client::Client;
use super::exit::Failure;
use super::samples::Samples;
use crate::api::story::StoryView;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a run came to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) refunds: RefundCounts,
    pub(super) psp: PspCounts,
    pub(super) ledger: LedgerCounts,
    pub(super) slowest_call_ms: i64,
    pub(super) elapsed_ms: u64,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct RefundCounts {
    pub(super) submitted: usize,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    pub(super) needs_review: usize,
    pub(super) processing: usize,
    /// Any other state.
    pub(super) pending: usize,
}

/// As counted by the mock.
#[derive(Debug, Default, Serialize)]
pub(super) struct PspCounts {
    pub(super) creates_received: u64,
    pub(super) refunds_executed: u64,
    pub(super) intents_refunded_more_than_once: u64,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct LedgerCounts {
    pub(super) transfers: usize,
    pub(super) sum_minor_by_currency: BTreeMap<String, i64>,
}

/// Counts what the samples of this run came to.
pub(super) async fn summarize(client: &Client, samples: &Samples, mock: &psp_mock::Mock) -> Result<Summary, Failure> {
    let mut summary = Summary::default();
    summary.refunds.submitted = samples.refunds.len();
    for sample in &samples.refunds {
        let story = client.get::<StoryView>(&["v1", "refunds", &sample.intent_id], &[]).await?.body;
        match story.refund.state.as_str() {
            "succeeded" => summary.refunds.succeeded += 1,
            "failed" => summary.refunds.failed += 1,
            "needs_review" => summary.refunds.needs_review += 1,
            "processing" => summary.refunds.processing += 1,
            _ => summary.refunds.pending += 1,
        }
        let durations =
            story.attempts.iter().filter_map(|attempt| attempt.outcome.as_ref()).map(|outcome| outcome.duration_ms);
        summary.slowest_call_ms = durations.fold(summary.slowest_call_ms, i64::max);
        for transfer in &story.transfers {
            summary.ledger.transfers += 1;
            let minor: i64 = transfer.amount_minor.parse().unwrap_or(0);
            let signed = if transfer.kind == "reverse" { -minor } else { minor };
            *summary.ledger.sum_minor_by_currency.entry(transfer.currency.clone()).or_default() += signed;
        }
    }
    let totals = mock.totals();
    summary.psp = PspCounts {
        creates_received: totals.creates_received,
        refunds_executed: totals.refunds_executed,
        intents_refunded_more_than_once: totals.intents_refunded_more_than_once,
    };
    Ok(summary)
}

pub(super) fn summary_text(summary: &Summary) -> String {
    let Summary { refunds, psp, ledger, slowest_call_ms, elapsed_ms } = summary;
    format!(
        "{} refunds: {} succeeded, {} failed, {} need review, {} with the PSP, {} pending\n\
         PSP: {} creates received, {} refunds executed, {} intents refunded more than once\n\
         ledger: {} transfers, minor units {:?}\n\
         slowest call {slowest_call_ms} ms, {elapsed_ms} ms in all\n",
        refunds.submitted,
        refunds.succeeded,
        refunds.failed,
        refunds.needs_review,
        refunds.processing,
        refunds.pending,
        psp.creates_received,
        psp.refunds_executed,
        psp.intents_refunded_more_than_once,
        ledger.transfers,
        ledger.sum_minor_by_currency,
    )
}
