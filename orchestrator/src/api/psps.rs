//! `GET /v1/psps`, `POST /v1/psps/{psp}/pause` and `/resume`. A pause stops creates; lookups go on.

use super::body::{JsonBody, NameInPath, WithReason};
use super::problem::Problem;
use super::{ApiState, LOCAL_ACTOR};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// One configured provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PspView {
    pub psp: String,
    pub account: String,
    pub kind: String,
    pub creates_paused: bool,
    pub paused_by: Option<String>,
    pub paused_because: Option<String>,
    pub paused_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PspsView {
    pub psps: Vec<PspView>,
}

async fn all(state: &ApiState) -> Result<PspsView, Problem> {
    let pauses = state.store.psp_pauses().await?;
    let view = |(name, provider): (&String, &super::ApiProvider)| {
        let pause = pauses.iter().find(|pause| pause.psp == *name);
        PspView {
            psp: name.clone(),
            account: provider.account.clone(),
            kind: provider.kind.to_owned(),
            creates_paused: pause.is_some(),
            paused_by: pause.map(|pause| pause.actor.clone()),
            paused_because: pause.map(|pause| pause.reason.clone()),
            paused_at: pause.map(|pause| pause.paused_at),
        }
    };
    Ok(PspsView { psps: state.providers.iter().map(view).collect() })
}

async fn one(state: &ApiState, psp: &str) -> Result<Json<PspView>, Problem> {
    all(state).await?.psps.into_iter().find(|view| view.psp == psp).map(Json).ok_or_else(|| unknown(psp))
}

fn unknown(psp: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "psp_unknown",
        "The PSP is not configured here",
        format!("this server has no PSP {psp:?}: GET /v1/psps names those it has"),
    )
}

fn check_known(state: &ApiState, psp: &str) -> Result<(), Problem> {
    if state.providers.contains_key(psp) { Ok(()) } else { Err(unknown(psp)) }
}

pub async fn list(State(state): State<ApiState>) -> Result<Json<PspsView>, Problem> {
    all(&state).await.map(Json)
}

pub async fn pause(
    State(state): State<ApiState>,
    NameInPath(psp): NameInPath,
    JsonBody(body): JsonBody<WithReason>,
) -> Result<Json<PspView>, Problem> {
    let reason = body.check()?;
    check_known(&state, &psp)?;
    state.store.pause_psp(&psp, LOCAL_ACTOR, &reason).await?;
    one(&state, &psp).await
}

pub async fn resume(
    State(state): State<ApiState>,
    NameInPath(psp): NameInPath,
    JsonBody(body): JsonBody<WithReason>,
) -> Result<Json<PspView>, Problem> {
    let reason = body.check()?;
    check_known(&state, &psp)?;
    if !state.store.resume_psp(&psp, LOCAL_ACTOR, &reason).await? {
        let detail = format!("creates of PSP {psp} are not paused: there is nothing to resume");
        return Err(Problem::new(StatusCode::CONFLICT, "psp_not_paused", "The PSP is not paused", detail));
    }
    state.wake.nudge();
    one(&state, &psp).await
}
