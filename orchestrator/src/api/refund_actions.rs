//! `POST /v1/refunds/{id}/replay` and `/cancel`: wishes, put into the intent's inbox for its holder to judge.
//!
//! A wish sent twice with the same `Idempotency-Key` is one wish. Across a crash: once it is in the inbox, some holder reads it.

use super::body::{JsonBody, NameInPath, WithReason, header_text};
use super::problem::Problem;
use super::views::RefundView;
use super::{ApiState, LOCAL_ACTOR};
use crate::store::change::{InboxResult, NewInboxRow};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jobs::ids::IntentId;
use jobs::refund::intent::{InboxMessage, Intent};
use jobs::refund::state::State as RefundState;
use std::time::Duration;

/// How long a cancel waits for its outcome.
const CANCEL_WAIT_MAX: Duration = Duration::from_secs(2);
/// Between looks at the inbox; a step without a call takes a few milliseconds.
const CANCEL_LOOK: Duration = Duration::from_millis(50);
const KEY_LENGTH_MAX: usize = 128;

pub async fn replay(
    State(state): State<ApiState>,
    NameInPath(id): NameInPath,
    headers: HeaderMap,
    JsonBody(body): JsonBody<WithReason>,
) -> Result<Response, Problem> {
    let reason = body.check()?;
    let intent = load(&state, &id).await?;
    if !matches!(intent.state, RefundState::Unknown | RefundState::Processing | RefundState::NeedsReview) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "replay_not_legal",
            "The refund can not be replayed now",
            format!(
                "{id} is {}, and only unknown, processing and needs_review are looked at on request: {}",
                intent.state,
                instead(intent.state)
            ),
        )
        .with("state", intent.state.as_str()));
    }
    let message = InboxMessage::Replay { actor: LOCAL_ACTOR.to_owned(), reason };
    append(&state, &headers, &intent.intent_id, message).await?;
    Ok(requested(&intent))
}

/// What else to do about a refund that no replay would move.
const fn instead(state: RefundState) -> &'static str {
    match state {
        RefundState::Recorded => "its create is planned anyway",
        RefundState::Sending => "its call is open and is looked up if no answer comes",
        _ => "it is final, and a new refund needs a new intent_id",
    }
}

pub async fn cancel(
    State(state): State<ApiState>,
    NameInPath(id): NameInPath,
    headers: HeaderMap,
    JsonBody(body): JsonBody<WithReason>,
) -> Result<Response, Problem> {
    let reason = body.check()?;
    let intent = load(&state, &id).await?;
    match intent.state {
        RefundState::Canceled => return Ok((StatusCode::OK, Json(RefundView::from(&intent))).into_response()),
        state if state.is_final() => return Err(refused(&id, &format!("it is {state} already"), state)),
        _ => {}
    }
    let message = InboxMessage::Cancel { actor: LOCAL_ACTOR.to_owned(), reason };
    let source_id = append(&state, &headers, &intent.intent_id, message).await?;
    match tokio::time::timeout(CANCEL_WAIT_MAX, outcome(&state, &intent.intent_id, &source_id)).await {
        Ok(outcome) => outcome,
        Err(_) => Ok(requested(&intent)),
    }
}

/// Looks until the holder has read the wish.
async fn outcome(state: &ApiState, id: &IntentId, source_id: &str) -> Result<Response, Problem> {
    loop {
        let story = state.store.story(id).await?.ok_or_else(|| Problem::refund_unknown(id.as_str()))?;
        let entry = story.inbox.iter().find(|entry| entry.row.source_id == source_id);
        if let Some(reading) = entry.and_then(|entry| entry.applied.as_ref()) {
            return match &reading.refused_because {
                Some(because) => Err(refused(id.as_str(), because, story.intent.state)),
                None => Ok((StatusCode::OK, Json(RefundView::from(&story.intent))).into_response()),
            };
        }
        tokio::time::sleep(CANCEL_LOOK).await;
    }
}

fn refused(id: &str, because: &str, state: RefundState) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "cancel_refused",
        "The refund can not be canceled",
        format!("{id} was not canceled: {because}"),
    )
    .with("state", state.as_str())
}

fn requested(intent: &Intent) -> Response {
    let body =
        serde_json::json!({ "intent_id": intent.intent_id, "requested": true, "refund": RefundView::from(intent) });
    (StatusCode::ACCEPTED, Json(body)).into_response()
}

async fn load(state: &ApiState, id: &str) -> Result<Intent, Problem> {
    let Ok(intent_id) = IntentId::new(id) else { return Err(Problem::refund_unknown(id)) };
    let loaded = state.store.load(&[intent_id]).await?;
    let file = loaded.files.into_iter().next().ok_or_else(|| Problem::refund_unknown(id))?;
    Ok(file.intent)
}

/// Stores the wish and nudges the worker; answers the wish's source id.
async fn append(
    state: &ApiState,
    headers: &HeaderMap,
    id: &IntentId,
    message: InboxMessage,
) -> Result<String, Problem> {
    let key = match header_text(headers, "idempotency-key")? {
        Some(key) if key.len() > KEY_LENGTH_MAX || key.is_empty() => {
            return Err(Problem::bad_request(
                "invalid_header",
                format!("Idempotency-Key takes 1 to {KEY_LENGTH_MAX} characters"),
            ));
        }
        Some(key) => key.to_owned(),
        None => (state.new_id)().to_string(),
    };
    let source_id = format!("api/{}/{id}/{key}", message.as_str());
    let row = NewInboxRow { intent_id: id.clone(), source_id: source_id.clone(), message };
    match state.store.append_inbox(&[row]).await?.into_iter().next() {
        Some(InboxResult::Stored { .. } | InboxResult::Duplicate) => {
            state.wake.nudge();
            Ok(source_id)
        }
        Some(InboxResult::UnknownIntent) => Err(Problem::refund_unknown(id.as_str())),
        None => Err(Problem::internal()),
    }
}
