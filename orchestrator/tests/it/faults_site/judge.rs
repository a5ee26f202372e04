//! Whether an intent ended once: by the PSP's own book, the ledger and the payment's counters.

use super::{Replica, Site, until};
use serde_json::Value;

/// An amount in minor units, which JSON carries as text.
pub(crate) fn minor(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no amount in {value}"))
}

/// The story of an intent once nothing is pending and nothing is unread.
pub(crate) async fn final_story(replica: &Replica, intent: &str) -> Value {
    let mut last = Value::Null;
    let looking = tokio::time::timeout(super::SOON, async {
        loop {
            if let Some(reply) = replica.try_get(&format!("/v1/refunds/{intent}")).await {
                last = reply.body;
                let is_read = |row: &Value| row["reading"] != "unread";
                let all_read = last["inbox"].as_array().is_some_and(|rows| rows.iter().all(is_read));
                if last["refund"]["status"].is_string() && last["refund"]["status"] != "pending" && all_read {
                    return;
                }
            }
            tokio::time::sleep(super::LOOK_EVERY).await;
        }
    });
    if looking.await.is_err() {
        panic!("{intent} does not end: {last:#}\n{}", replica.process.output());
    }
    last
}

/// Awaits that the intent ends, and judges that exactly this amount went out once.
pub(crate) async fn judge_posted_once(site: &Site, replica: &Replica, intent: &str, amount_minor: i64) -> Value {
    let story = final_story(replica, intent).await;
    judge_story(site, &story, intent, amount_minor);
    let payment = &story["payment"];
    assert_eq!((minor(&payment["refunded_minor"]), minor(&payment["reserved_minor"])), (amount_minor, 0), "{story:#}");
    story
}

/// Judges one final story; the payment's counters are the caller's to judge when it has several refunds.
pub(crate) fn judge_story(site: &Site, story: &Value, intent: &str, amount_minor: i64) {
    let booked = site.booked(intent);
    assert_eq!(booked.len(), 1, "{intent} was refunded {} times: {booked:?}\n{story:#}", booked.len());
    assert_eq!(booked[0].amount, amount_minor, "{intent}");
    assert_eq!(story["refund"]["state"], "succeeded", "{story:#}");
    assert_eq!(story["refund"]["psp_refund_ref"], booked[0].id.as_str(), "{story:#}");
    assert_eq!(Some(story["idempotency_key"].as_str().unwrap()), booked[0].key.as_deref(), "{intent}");
    let counters = site.mock.counters(intent).unwrap();
    assert_eq!((counters.refunds_executed, counters.distinct_keys), (1, 1), "{counters:?}");
    let transfers = story["transfers"].as_array().unwrap();
    assert_eq!(transfers.len(), 1, "{story:#}");
    assert_eq!((&transfers[0]["kind"], minor(&transfers[0]["amount_minor"])), (&Value::from("post"), amount_minor));
    assert!(story["breaks"].as_array().unwrap().is_empty(), "{story:#}");
}

impl Replica {
    /// Awaits a row in an intent's inbox that says what came too late.
    pub(crate) async fn late_answer(&self, intent: &str) -> Value {
        until("a late answer in the inbox", || async {
            let story = self.get(&format!("/v1/refunds/{intent}")).await.body;
            story["inbox"].as_array()?.iter().find(|row| row["kind"] == "late_answer").cloned()
        })
        .await
    }
}
