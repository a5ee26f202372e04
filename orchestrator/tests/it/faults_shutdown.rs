//! Replicas that are asked to end, that die, and that stand still for longer than their lease.

use crate::faults_site::{Replica, SOON, Setup, Site, final_story, judge_posted_once, judge_story, until};
use psp_mock::{Config, Effect, Executes, Fault, Match};
use std::time::Duration;
use testbed::Exit;

const SLOW_CALL_MS: u64 = 3_000;

/// B may be ready before or after; whatever it does is seen in the attempts, which name their session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_asked_to_end_posts_its_open_call_first_and_nobody_takes_it_over() {
    let site = Site::postgres(Config::default()).await;
    let setup = || Setup { psp_timeout: "10s", ..Setup::default() };
    let a = site.replica(setup()).await;
    site.payment(&a, "p-1", 10_000, "EUR").await;
    let slow = Effect::Latency { ms: SLOW_CALL_MS, executes: Executes::Last };
    site.mock.add_fault(Fault::once(Match::default(), slow)).unwrap();
    a.submit("r-1", "p-1", 1_000, "EUR").await;
    until("the create to be open", || async { (site.mock.totals().calls_in_flight == 1).then_some(()) }).await;
    a.process.terminate().unwrap();
    let b = site.replica(setup()).await;
    let exit = a.process.wait_exit(SOON).await.unwrap();
    assert_eq!(exit, Exit::Code(0), "{}", a.process.output());
    // No poll: it must be there when A is gone.
    let story = b.get("/v1/refunds/r-1").await.body;
    assert_eq!(story["refund"]["state"], "succeeded", "{story:#}\n{}", a.process.output());
    let story = judge_posted_once(&site, &b, "r-1", 1_000).await;
    let attempts = story["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["kind"]), (1, &"create".into()), "{story:#}");
    assert_eq!(site.mock.totals().calls_received, 1, "B asked or sent again");
}

const REFUNDS: usize = 300;
const PAYMENTS: usize = 30;

fn intent(at: usize) -> String {
    format!("r-{at}")
}

/// Side by side at the three replicas, so that all of them have work before the first call is answered.
async fn submit_all(replicas: [&Replica; 3]) {
    let to_one = |own: usize| async move {
        for at in (own..REFUNDS).step_by(replicas.len()) {
            replicas[own].submit(&intent(at), &format!("p-{}", at % PAYMENTS), 100, "EUR").await;
        }
    };
    tokio::join!(to_one(0), to_one(1), to_one(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_post_300_refunds_once_though_one_is_killed_and_one_stands_still_beyond_its_lease() {
    let latency = Duration::from_millis(1_500);
    let site = Site::postgres(Config { latency, ..Config::default() }).await;
    let setup = Setup::default;
    let (a, b, c) = tokio::join!(site.replica(setup()), site.replica(setup()), site.replica(setup()));
    let payments: Vec<String> = (0..PAYMENTS).map(|at| format!("p-{at}")).collect();
    site.payments(&a, &payments, 10_000, "EUR").await;
    submit_all([&a, &b, &c]).await;
    let open = || async { (site.mock.totals().calls_in_flight > 0).then_some(()) };
    until("calls to be open", open).await;
    a.kill().await;
    b.stand_still().await;
    for at in 0..REFUNDS {
        judge_story(&site, &final_story(&c, &intent(at)).await, &intent(at), 100);
    }
    b.process.resume().unwrap();
    b.is_ready().await;
    let each = i64::try_from(REFUNDS / PAYMENTS).unwrap() * 100;
    for payment in &payments {
        let view = b.get(&format!("/v1/payments/{payment}")).await.body;
        assert_eq!(
            (&view["refunded_minor"], &view["reserved_minor"]),
            (&each.to_string().into(), &"0".into()),
            "{view}"
        );
    }
    for at in 0..REFUNDS {
        judge_story(&site, &final_story(&b, &intent(at)).await, &intent(at), 100);
    }
    let totals = site.mock.totals();
    assert_eq!((totals.refunds_executed, totals.intents_refunded_more_than_once), (300, 0), "{totals:?}");
}
