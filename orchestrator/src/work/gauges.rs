//! What waits and for how long, for /metrics.

use super::{Link, Shared};
use jobs::refund::state::State;
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(10);

pub(super) async fn run(shared: Arc<Shared>, links: Vec<Arc<Link>>) {
    loop {
        for link in &links {
            shared.metrics.psp_in_flight(&link.psp, link.open_calls.count());
        }
        shared.metrics.clock_difference_ms(shared.conditions.clock_difference_ms());
        match shared.store.backlog().await {
            Ok(backlog) => show(&shared, &backlog, &links),
            Err(error) => tracing::warn!(error = %crate::report(&error), "cannot read the backlog"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn show(shared: &Shared, backlog: &crate::store::read::Backlog, links: &[Arc<Link>]) {
    let now = shared.conditions.now().database;
    let mut not_configured = 0;
    let mut paused = 0;
    for state in State::ALL {
        let of_state = backlog.states.iter().filter(|count| count.state == state);
        shared.metrics.refunds(state.as_str(), of_state.clone().map(|count| count.count).sum());
        if !state.is_final() {
            let oldest = of_state.clone().filter_map(|count| count.oldest_at).min();
            let age = oldest.and_then(|at| (now - at).to_std().ok()).unwrap_or(Duration::ZERO);
            shared.metrics.refund_oldest(state.as_str(), age);
            for count in of_state {
                if !links.iter().any(|link| link.psp == count.psp) {
                    not_configured += count.count;
                } else if state == State::Recorded && !shared.conditions.creates_allowed(&count.psp) {
                    paused += count.count;
                }
            }
        }
    }
    shared.metrics.refunds_left_alone("psp_not_configured", not_configured);
    shared.metrics.refunds_left_alone("creates_stopped", paused);
    shared.metrics.refunds_left_alone("unknown_machine_version", backlog.unknown_machine_version);
    shared.metrics.refunds_left_alone("unreadable", i64::try_from(shared.poison.unreadable()).unwrap_or(i64::MAX));
    if let Some(intent_id) = &backlog.without_next_action {
        tracing::error!(%intent_id, "a refund is neither final nor parked and has no next action");
    }
}
