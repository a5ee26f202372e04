//! Replay, cancel, pause and resume.

use super::server::{Holder, Server};
use jobs::refund::state::State;
use serde_json::json;

#[tokio::test]
async fn replay_is_legal_only_from_unknown_processing_and_needs_review() {
    let server = Server::start().await;
    for state in [
        State::Recorded,
        State::Sending,
        State::Unknown,
        State::Processing,
        State::Succeeded,
        State::Failed,
        State::Canceled,
        State::NeedsReview,
    ] {
        let id = format!("r-{state}");
        server.refund_in(&id, state).await;
        let reply = server.post(&format!("/v1/refunds/{id}/replay"), json!({ "reason": "asked by a customer" })).await;
        let legal = matches!(state, State::Unknown | State::Processing | State::NeedsReview);
        assert_eq!(reply.status, if legal { 202 } else { 409 }, "{state}: {reply:?}");
        let story = server.get(&format!("/v1/refunds/{id}")).await.body;
        assert_eq!(story["inbox"].as_array().map(Vec::len), Some(usize::from(legal)), "{state}");
        if legal {
            assert_eq!(story["inbox"][0]["kind"], "replay");
            assert_eq!(story["inbox"][0]["detail"], "by local: asked by a customer");
        } else {
            assert_eq!(reply.text("code"), "replay_not_legal");
        }
    }
}

#[tokio::test]
async fn a_wish_needs_a_reason_and_a_refund() {
    let server = Server::start().await;
    server.refund_in("r-1", State::Unknown).await;
    for (path, body, status, code) in [
        ("r-1/replay", json!({}), 400, "invalid_body"),
        ("r-1/replay", json!({ "reason": "" }), 400, "invalid_text"),
        ("r-1/cancel", json!({ "reason": "  " }), 400, "invalid_text"),
        ("r-1/cancel", json!({ "reason": "x", "force": true }), 400, "invalid_body"),
        ("r-2/replay", json!({ "reason": "x" }), 404, "refund_unknown"),
        ("r-2/cancel", json!({ "reason": "x" }), 404, "refund_unknown"),
        ("p-r-1/replay", json!({ "reason": "x" }), 404, "refund_unknown"),
    ] {
        let reply = server.post(&format!("/v1/refunds/{path}"), body).await;
        assert_eq!((reply.status, reply.text("code")), (status, code), "{path}");
    }
}

#[tokio::test]
async fn a_wish_sent_twice_with_one_key_is_one_wish() {
    let server = Server::start().await;
    server.refund_in("r-1", State::Unknown).await;
    for _ in 0..3 {
        let headers = [("idempotency-key", "k-1")];
        let reply = server.post_with("/v1/refunds/r-1/replay", json!({ "reason": "x" }), &headers).await;
        assert_eq!(reply.status, 202);
    }
    assert_eq!(server.get("/v1/refunds/r-1").await.body["inbox"].as_array().map(Vec::len), Some(1));
}

/// Cancels while a holder reads the inbox as soon as it is woken.
async fn cancel_read_by(server: &Server, id: &str, state: State, refused_because: Option<&str>) -> super::Reply {
    let path = format!("/v1/refunds/{id}/cancel");
    let mut woken = server.wake.listen();
    let holder = async {
        woken.nudged().await;
        Holder::new(&*server.store).read_inbox(id, state, refused_because).await;
    };
    let (reply, ()) = tokio::join!(server.post(&path, json!({ "reason": "customer changed her mind" })), holder);
    reply
}

#[tokio::test]
async fn cancel_answers_200_when_the_holder_agrees_and_409_with_its_reason_when_not() {
    let server = Server::start().await;
    for id in ["r-1", "r-2"] {
        server.refund_in(id, State::Recorded).await;
    }
    let canceled = cancel_read_by(&server, "r-1", State::Canceled, None).await;
    assert_eq!((canceled.status, canceled.text("state")), (200, "canceled"), "{canceled:?}");
    let refused = cancel_read_by(&server, "r-2", State::Recorded, Some("a create was started")).await;
    assert_eq!((refused.status, refused.text("code")), (409, "cancel_refused"));
    assert!(refused.text("detail").contains("a create was started"), "{refused:?}");
    let again = server.post("/v1/refunds/r-1/cancel", json!({ "reason": "again" })).await;
    assert_eq!(again.status, 200);
}

#[tokio::test]
async fn cancel_answers_202_when_nobody_has_read_it_within_two_seconds() {
    let server = Server::start().await;
    server.refund_in("r-1", State::Sending).await;
    let reply = server.post("/v1/refunds/r-1/cancel", json!({ "reason": "x" })).await;
    assert_eq!((reply.status, reply.body["requested"].as_bool()), (202, Some(true)));
    server.refund_in("r-2", State::Succeeded).await;
    let reply = server.post("/v1/refunds/r-2/cancel", json!({ "reason": "x" })).await;
    assert_eq!((reply.status, reply.text("code")), (409, "cancel_refused"));
}

#[tokio::test]
async fn a_pause_is_shown_until_it_is_resumed() {
    let server = Server::start().await;
    server.refund_in("r-1", State::Recorded).await;
    let reason = json!({ "reason": "the PSP is down" });
    let reply = server.post("/v1/psps/acme/resume", reason.clone()).await;
    assert_eq!((reply.status, reply.text("code")), (409, "psp_not_paused"));
    assert_eq!(server.post("/v1/psps/other/pause", reason.clone()).await.text("code"), "psp_unknown");
    assert_eq!(server.post("/v1/psps/acme/pause", json!({})).await.status, 400);
    assert_eq!(server.post("/v1/psps/acme/pause", reason.clone()).await.body["creates_paused"], true);
    let listed = server.get("/v1/psps").await.body;
    assert_eq!(listed["psps"][0]["paused_because"], "the PSP is down");
    let story = server.get("/v1/refunds/r-1").await.body;
    assert_eq!(story["left_alone"], "psp_paused");
    assert!(story["why_it_waits"].as_str().unwrap().contains("the PSP is down"));
    assert_eq!(server.post("/v1/psps/acme/resume", reason).await.body["creates_paused"], false);
    assert_eq!(server.get("/v1/refunds/r-1").await.body["left_alone"], json!(null));
}
