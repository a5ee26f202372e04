//! What goes on beside the renewal while a session is open: taking holds back that outlived their maximum, and sweeping strays.
//!
//! Both loops end only by being dropped. An error leaves the work to the next turn.

use super::session::Session;
use std::convert::Infallible;
use std::time::Duration;

/// Strays are looked for this often; sooner after a request that was not answered.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Holds past their maximum are looked for this often.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn expire_holds(session: &Session) -> Infallible {
    loop {
        tokio::time::sleep(EXPIRE_EVERY).await;
        match session.expire_holds().await {
            Ok(0) => {}
            Ok(count) => {
                tracing::warn!(session = %session.id(), count, "holds outlived the hold maximum and were given back")
            }
            Err(error) => tracing::warn!(session = %session.id(), %error, "expired holds could not be given back yet"),
        }
    }
}

pub(super) async fn sweep(session: &Session) -> Infallible {
    let pause = session.parameters().request_timeout;
    loop {
        tokio::select! {
            biased;
            // What went unanswered may still take effect: look a little later.
            () = session.sweep_wanted() => tokio::time::sleep(pause).await,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
        match session.sweep().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(session = %session.id(), count, "strays of unanswered claims were given back"),
            Err(error) => tracing::warn!(session = %session.id(), %error, "strays could not be looked for"),
        }
    }
}
