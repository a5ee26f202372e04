//! The binary: says where it listens, obeys its options, ends on SIGTERM.

use crate::support::client;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

#[tokio::test]
async fn the_process_prints_its_address_serves_and_ends_on_a_signal() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_psp-mock"))
        .args(["--latency", "50ms", "--seed", "9", "--fault-rate", "rate_limited=1", "--key-lifetime", "1h"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("process starts");
    let mut lines = BufReader::new(process.stdout.take().expect("is piped")).lines();
    let line = lines.next_line().await.expect("is readable").expect("a line comes");
    let ready: serde_json::Value = serde_json::from_str(&line).expect("is JSON");
    let url = ready["listening"].as_str().expect("has an address");
    let refund =
        client().post(format!("{url}/v1/refunds")).bearer_auth("sk_1").body("payment_intent=pi_1").send().await;
    assert_eq!(refund.expect("is answered").status().as_u16(), 429);
    let id = process.id().expect("still runs").to_string();
    let kill = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill runs");
    assert!(kill.success());
    let ended = tokio::time::timeout(Duration::from_secs(10), process.wait()).await.expect("ends in time");
    assert!(ended.expect("has a status").success());
}

#[tokio::test]
async fn wrong_options_are_refused_with_a_usage_error() {
    for options in [&["--fault-rate", "nonsense=1"][..], &["--latency", "4 weeks"], &["--webhook-url", "http://x"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_psp-mock")).args(options).output().await.expect("process starts");
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

#[tokio::test]
async fn stopping_does_not_wait_for_callers_that_hang() {
    let psp = crate::support::Psp::start().await;
    psp.payment("a", 1000, "eur");
    psp.fault(psp_mock::Match::default(), psp_mock::Effect::AnswerLost { how: psp_mock::How::Hang });
    let crate::support::Psp { mock, client } = psp;
    let refund =
        client.post(format!("{}/v1/refunds", mock.url())).bearer_auth("sk_1").body("payment_intent=pi_a").send();
    let stop = async {
        while mock.totals().refunds_executed == 0 {
            tokio::task::yield_now().await;
        }
        mock.stop().await;
    };
    let (answer, ()) =
        tokio::time::timeout(Duration::from_secs(4), async { tokio::join!(refund, stop) }).await.expect("stops");
    assert!(answer.is_err());
}
