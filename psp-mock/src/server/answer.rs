//! The answer to a call: waits as long as its outcome says, then writes it, spoils it, or lets the caller down.

use super::call::Call;
use super::course::{self, Outcome};
use super::{Line, Shared};
use crate::clock::Mark;
use crate::faults::{Fate, How};
use crate::state::keys::Answer;
use crate::wire::ApiError;
use crate::wire::objects::API_VERSION;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A caller that is left hanging and does not give up is let go after this long.
const HANG_LONGEST: Duration = Duration::from_secs(600);

pub(crate) async fn v1(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(line): ConnectInfo<Line>,
    request: Request<Body>,
) -> Response<Body> {
    let _under_way = UnderWay::begin(&shared);
    let request_id = shared.request_id();
    let call = match Call::read(&shared, request).await {
        Ok(call) => call,
        Err(error) => return response(error.into(), &request_id),
    };
    let key = call.key_text.clone();
    let outcome = course::run(&shared, call).await;
    if !outcome.latency.is_zero() {
        wait(&shared, &line, outcome.latency).await;
    }
    finish(&shared, &line, outcome, &request_id, key.as_deref()).await
}

async fn finish(shared: &Shared, line: &Line, outcome: Outcome, request_id: &str, key: Option<&str>) -> Response<Body> {
    let Outcome { answer, fate, replayed, retry_after_s, .. } = outcome;
    let answer = match fate {
        Fate::NoAnswer(How::GatewayTimeout) => ApiError::internal(504).into(),
        Fate::NoAnswer(how) => {
            match how {
                How::Reset => line.reset(),
                How::Hang => {
                    wait(shared, line, HANG_LONGEST).await;
                    line.close();
                }
                How::Close | How::GatewayTimeout => line.close(),
            }
            answer
        }
        Fate::Truncated(bytes) => {
            line.truncate(bytes.unwrap_or(answer.body.len() as u32 / 2));
            answer
        }
        Fate::Whole | Fate::Error { .. } => answer,
    };
    let mut response = response(answer, request_id);
    let headers = response.headers_mut();
    if let Some(key) = key.and_then(|key| HeaderValue::from_str(key).ok()) {
        headers.insert(HeaderName::from_static("idempotency-key"), key);
    }
    if replayed {
        headers.insert(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"));
    }
    if let Some(seconds) = retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn response(answer: Answer, request_id: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("stripe-version"), HeaderValue::from_static(API_VERSION));
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static("request-id"), value);
    }
    response
}

/// Waits, or closes the line at once when the mock stops.
async fn wait(shared: &Shared, line: &Line, how_long: Duration) {
    tokio::select! {
        biased;
        () = shared.stopped() => line.close(),
        () = tokio::time::sleep(how_long) => {}
    }
}

/// Counts a call as in flight until it is answered or its caller gives up, whichever drops this.
struct UnderWay<'a> {
    shared: &'a Shared,
    begun: Mark,
}

impl<'a> UnderWay<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.in_flight.fetch_add(1, Ordering::Relaxed);
        Self { shared, begun: Mark::now() }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.shared.slowest_ms.fetch_max(self.begun.elapsed_ms(), Ordering::Relaxed);
    }
}
