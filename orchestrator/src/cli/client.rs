//! The command line's HTTP client. Besides adapters in `psp/`, the only user of reqwest.

use super::ServerArgs;
use super::exit::{Exit, Failure};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// Longer than any request of the server takes.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server to ask.
pub(crate) struct Client {
    http: reqwest::Client,
    base: reqwest::Url,
    token: Option<SecretString>,
}

/// A good answer.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) status: u16,
    pub(crate) body: T,
}

impl Client {
    pub(crate) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let base = reqwest::Url::parse(&args.server).ok().filter(|url| url.has_host());
        let base = base.ok_or_else(|| {
            Failure::usage(format!("--server {:?} is not an address such as http://127.0.0.1:8080", args.server))
        })?;
        Ok(Self { http: http(TIMEOUT)?, base, token: args.token.clone() })
    }

    /// The address of a path; each segment is escaped.
    fn url(&self, segments: &[&str]) -> Result<reqwest::Url, Failure> {
        let mut url = self.base.clone();
        let base = self.base.as_str();
        let no_path = || Failure::usage(format!("--server {base:?} can have no path below it"));
        url.path_segments_mut().map_err(|()| no_path())?.pop_if_empty().extend(segments);
        Ok(url)
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        query: &[(&str, String)],
    ) -> Result<Answer<T>, Failure> {
        self.send(self.http.get(self.url(segments)?).query(query)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<Answer<T>, Failure> {
        self.send(self.http.post(self.url(segments)?).json(body)).await
    }

    async fn send<T: DeserializeOwned>(&self, mut request: reqwest::RequestBuilder) -> Result<Answer<T>, Failure> {
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        if status >= 400 {
            return Err(self.refused(status, &bytes));
        }
        let body = serde_json::from_slice(&bytes).map_err(|_| self.not_ours(status))?;
        Ok(Answer { status, body })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let base = self.base.as_str().trim_end_matches('/');
        if error.is_connect() {
            return Failure::failed(format!(
                "no server answers at {base}: start one with `orchestrator dev` or `orchestrator serve`, or name another with --server"
            ));
        }
        Failure::failed(format!(
            "the server at {base} did not answer to the end ({}): whether the command took effect is not known; run it again",
            root_cause(error)
        ))
    }

    fn not_ours(&self, status: u16) -> Failure {
        let base = self.base.as_str().trim_end_matches('/');
        Failure::failed(format!(
            "{base} answered {status} and nothing this command understands: is it an orchestrator of this version?"
        ))
    }

    fn refused(&self, status: u16, bytes: &[u8]) -> Failure {
        let problem: Option<Value> = serde_json::from_slice(bytes).ok();
        let text = |name: &str| problem.as_ref().and_then(|problem| problem.get(name)).and_then(Value::as_str);
        let (Some(code), Some(detail)) = (text("code"), text("detail")) else { return self.not_ours(status) };
        Failure::new(exit_of(status, code), format!("{detail} ({code})"))
    }
}

/// What a problem means for a script.
fn exit_of(status: u16, code: &str) -> Exit {
    match (status, code) {
        (404 | 405, "path_unknown" | "method_not_allowed") => Exit::Failed,
        (404, _) => Exit::NotFound,
        (401 | 403 | 409 | 422, _) => Exit::Refused,
        (400..=499, _) => Exit::Usage,
        _ => Exit::Failed,
    }
}

fn http(timeout: Duration) -> Result<reqwest::Client, Failure> {
    reqwest::Client::builder()
        .timeout(timeout)
        .connect_timeout(CONNECT_TIMEOUT.min(timeout))
        .build()
        .map_err(|error| Failure::failed(format!("the HTTP client did not start: {error}")))
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Whether anything speaks HTTP at an address; any answer will do.
pub(crate) async fn reach(url: &str, timeout: Duration) -> Result<(), String> {
    let http = http(timeout).map_err(|failure| failure.message.unwrap_or_default())?;
    http.get(url).send().await.map(drop).map_err(|error| root_cause(&error))
}
