//! Cases from the field, their values in tables of ours: two replicas at once, one key for good, keys that die early, unknown repaired by
//! asking.

use crate::faults_site::{SOON, Setup, Site, final_story, judge_posted_once, minor, until};
use psp_mock::{CallKind, Config, Effect, Fault, How, Match};
use std::time::Duration;
use testbed::{Mode, Proxy, When};

/// Refunds of one payment, all at once, alternately to two replicas.
struct AtOnce {
    captured_minor: i64,
    currency: &'static str,
    each_minor: i64,
    requests: usize,
    accepted: usize,
    remaining_minor: i64,
}

async fn check_at_once(case: AtOnce) {
    let site = Site::postgres(Config::default()).await;
    let (a, b) = tokio::join!(site.replica(Setup::default()), site.replica(Setup::default()));
    site.payment(&a, "p-1", case.captured_minor, case.currency).await;
    let intents: Vec<String> = (0..case.requests).map(|at| format!("r-{at}")).collect();
    let mut statuses = Vec::new();
    let mut requests = tokio::task::JoinSet::new();
    for (at, intent) in intents.iter().enumerate() {
        let body = serde_json::json!({ "intent_id": intent, "payment_id": "p-1",
            "amount_minor": case.each_minor.to_string(), "currency": case.currency });
        let url = if at % 2 == 0 { a.url("/v1/refunds") } else { b.url("/v1/refunds") };
        let http = reqwest::Client::new();
        requests.spawn(async move { (at, http.post(url).json(&body).send().await.unwrap().status().as_u16()) });
    }
    while let Some(answered) = requests.join_next().await {
        statuses.push(answered.unwrap());
    }
    let accepted: Vec<usize> = statuses.iter().filter(|(_, status)| *status == 202).map(|(at, _)| *at).collect();
    assert_eq!(accepted.len(), case.accepted, "{statuses:?}");
    assert!(statuses.iter().all(|(_, status)| [202, 409, 422].contains(status)), "{statuses:?}");
    for at in accepted {
        let story = final_story(&b, &intents[at]).await;
        assert_eq!(story["refund"]["state"], "succeeded", "{story:#}");
    }
    let payment = a.get("/v1/payments/p-1").await.body;
    let sum = i64::try_from(case.accepted).unwrap() * case.each_minor;
    assert_eq!((minor(&payment["refunded_minor"]), minor(&payment["reserved_minor"])), (sum, 0), "{payment}");
    assert_eq!(minor(&payment["refundable_minor"]), case.remaining_minor, "{payment}");
    let totals = site.mock.totals();
    let calls = u64::try_from(case.accepted).unwrap();
    assert_eq!((totals.creates_received, totals.refunds_executed), (calls, calls), "{totals:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_at_once_at_two_replicas_never_exceed_the_capture() {
    let usd = |each_minor, requests, accepted, remaining_minor| AtOnce {
        captured_minor: 10_000,
        currency: "USD",
        each_minor,
        requests,
        accepted,
        remaining_minor,
    };
    let pounds =
        AtOnce { captured_minor: 392, currency: "GBP", each_minor: 392, requests: 2, accepted: 1, remaining_minor: 0 };
    tokio::join!(
        check_at_once(usd(6_000, 2, 1, 4_000)),
        check_at_once(usd(3_000, 20, 3, 1_000)),
        check_at_once(pounds)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_after_timeout_restart_and_takeover_uses_the_first_key() {
    let site = Site::postgres(Config::default()).await;
    let psp = Proxy::start(site.mock.address()).unwrap();
    let wired = || Setup { psp_url: Some(format!("http://{}", psp.address())), psp_timeout: "1s", ..Setup::default() };
    let a = site.replica(wired()).await;
    site.payment(&a, "p-1", 10_000, "EUR").await;
    // Timeout: the first create does not even arrive, and no lookup is answered before the restart.
    let first = psp.hold_when(When::to_server("POST /v1/refunds"));
    a.submit("r-1", "p-1", 1_000, "EUR").await;
    first.held().await.unwrap();
    until("the create to be given up", || async {
        let story = a.get("/v1/refunds/r-1").await.body;
        (story["attempts"][0]["outcome"]["outcome"] == "unknown").then_some(())
    })
    .await;
    // Restart; the PSP does the resent refund and answers nobody.
    site.mock.add_fault(Fault::once(Match::default(), Effect::AnswerLost { how: How::Hang })).unwrap();
    a.kill().await;
    let restarted = site.replica(wired()).await;
    until("the resend", || async { (site.mock.totals().refunds_executed == 1).then_some(()) }).await;
    // Takeover: the holder of the open call dies, and what was held since the beginning arrives.
    restarted.kill().await;
    first.release();
    let successor = site.replica(Setup::default()).await;
    let story = judge_posted_once(&site, &successor, "r-1", 1_000).await;
    let creates = story["attempts"].as_array().unwrap().iter().filter(|attempt| attempt["kind"] == "create");
    let expiries: Vec<_> = creates.map(|attempt| attempt["key_expires_at"].clone()).collect();
    assert!(expiries.len() == 2 && expiries[0] == expiries[1], "a resend renewed the key: {expiries:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_the_psp_forgets_before_it_is_back_costs_nothing() {
    let key_lifetime = Duration::from_secs(60);
    let site = Site::postgres(Config { key_lifetime, ..Config::default() }).await;
    let psp = Proxy::start(site.mock.address()).unwrap();
    // A key that lives a minute is as good as none: nothing is ever sent twice.
    let psp_url = Some(format!("http://{}", psp.address()));
    let a = site.replica(Setup { psp_url, key_lifetime: "none", psp_timeout: "1s", ..Setup::default() }).await;
    site.payment(&a, "p-1", 10_000, "EUR").await;
    let answer = psp.hold_when(When::answer_to("POST /v1/refunds"));
    a.submit("r-1", "p-1", 1_000, "EUR").await;
    answer.held().await.unwrap();
    psp.set(Mode::Cut).await.unwrap();
    site.mock.advance(Duration::from_secs(120));
    until("lookups to fail", || async {
        let story = a.get("/v1/refunds/r-1").await.body;
        (story["attempts"].as_array()?.len() >= 3).then_some(())
    })
    .await;
    psp.set(Mode::Pass).await.unwrap();
    let story = judge_posted_once(&site, &a, "r-1", 1_000).await;
    assert_eq!(site.mock.counters("r-1").unwrap().creates_received, 1, "{story:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_is_repaired_by_asking_when_the_list_says_so_at_once_or_only_later() {
    let check = |lag_ms: Option<u64>| async move {
        let site = Site::postgres(Config::default()).await;
        // The window in which a list may lag is configured longer than it lags.
        let a = site.replica(Setup { psp_timeout: "1s", absence_window: "40s", ..Setup::default() }).await;
        site.payment(&a, "p-1", 10_000, "EUR").await;
        let mut effects = vec![Effect::AnswerLost { how: How::Hang }];
        effects.extend(lag_ms.map(|ms| Effect::ListLag { ms }));
        site.mock.add_fault(Fault { matches: Match::default(), count: 1, effects }).unwrap();
        a.submit("r-1", "p-1", 1_000, "EUR").await;
        if lag_ms.is_some() {
            until("two lookups that find nothing", || async {
                let story = a.get("/v1/refunds/r-1").await.body;
                let absent = |attempt: &&serde_json::Value| attempt["outcome"]["outcome"] == "absent";
                (story["attempts"].as_array()?.iter().filter(absent).count() >= 2).then_some(())
            })
            .await;
            site.mock.advance(Duration::from_secs(30));
        }
        judge_posted_once(&site, &a, "r-1", 1_000).await;
        assert_eq!(site.mock.counters("r-1").unwrap().creates_received, 1);
    };
    tokio::join!(check(None), check(Some(30_000)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_before_the_call_is_repaired_by_the_next_holder() {
    let site = Site::postgres(Config::default()).await;
    let psp = Proxy::start(site.mock.address()).unwrap();
    let a = site.replica(Setup { psp_url: Some(format!("http://{}", psp.address())), ..Setup::default() }).await;
    site.payment(&a, "p-1", 10_000, "EUR").await;
    let create = psp.hold_when(When::to_server("POST /v1/refunds"));
    a.submit("r-1", "p-1", 1_000, "EUR").await;
    create.held().await.unwrap();
    a.kill().await;
    create.cut();
    let b = site.replica(Setup::default()).await;
    let story = judge_posted_once(&site, &b, "r-1", 1_000).await;
    let kinds: Vec<_> = story["attempts"].as_array().unwrap().iter().map(|attempt| attempt["kind"].clone()).collect();
    assert_eq!((&kinds[0], &kinds[1], kinds.last().unwrap()), (&"create".into(), &"lookup".into(), &"create".into()));
    assert_eq!(site.mock.counters("r-1").unwrap().creates_received, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_that_nobody_answers_waits_for_a_person_with_its_reservation() {
    let site = Site::postgres(Config::default()).await;
    let unknown_ladder = r#"["0s", "1s", "1s"]"#;
    let a = site.replica(Setup { psp_timeout: "1s", unknown_ladder, ..Setup::default() }).await;
    site.payment(&a, "p-1", 10_000, "EUR").await;
    let silent =
        |call| Fault { matches: Match::call(call), count: 0, effects: vec![Effect::AnswerLost { how: How::Hang }] };
    site.mock.add_fault(silent(CallKind::Create)).unwrap();
    site.mock.add_fault(silent(CallKind::List)).unwrap();
    a.submit("r-1", "p-1", 1_000, "EUR").await;
    let story = final_story(&a, "r-1").await;
    assert_eq!(story["refund"]["state"], "needs_review", "{story:#}");
    assert_eq!(minor(&story["payment"]["reserved_minor"]), 1_000, "{story:#}");
    assert!(story["transfers"].as_array().unwrap().is_empty(), "{story:#}");
    assert_eq!(site.mock.counters("r-1").unwrap().refunds_executed, 1);
    tokio::time::timeout(SOON, a.is_ready()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_refunds_that_carry_our_reference_are_for_a_person() {
    let site = Site::postgres(Config::default()).await;
    let a = site.replica(Setup { psp_timeout: "1s", ..Setup::default() }).await;
    site.payment(&a, "p-1", 10_000, "EUR").await;
    site.mock.add_fault(Fault::once(Match::default(), Effect::AnswerLost { how: How::Hang })).unwrap();
    a.submit("r-1", "p-1", 1_000, "EUR").await;
    until("the create to execute", || async { (site.mock.totals().refunds_executed == 1).then_some(()) }).await;
    // Somebody else's program, with our reference and its own key.
    let form = [("payment_intent", "pi_p-1"), ("amount", "1000"), ("metadata[intent_id]", "r-1")];
    let http = reqwest::Client::new();
    let second = http.post(format!("{}/v1/refunds", site.mock.url())).bearer_auth("sk_test_faults").form(&form);
    assert_eq!(second.send().await.unwrap().status().as_u16(), 200);
    let story = final_story(&a, "r-1").await;
    assert_eq!(story["refund"]["state"], "needs_review", "{story:#}");
    assert!(story["transfers"].as_array().unwrap().is_empty(), "{story:#}");
    assert_eq!(minor(&story["payment"]["reserved_minor"]), 1_000, "{story:#}");
}
