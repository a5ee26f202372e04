//! A nudge to every intake: something new may be due. Never lost between two looks, and any number of nudges is one.

use std::sync::Arc;
use tokio::sync::watch;

/// Shared by whoever nudges and whoever is nudged.
#[derive(Debug, Clone)]
pub struct Wake(Arc<watch::Sender<()>>);

impl Default for Wake {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(())))
    }
}

impl Wake {
    pub fn nudge(&self) {
        self.0.send_replace(());
    }

    #[must_use]
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// One listener's view: a nudge since it last looked counts.
#[derive(Debug)]
pub struct Listener(watch::Receiver<()>);

impl Listener {
    /// Forgets nudges so far; what they announced is about to be looked at.
    pub fn look(&mut self) {
        self.0.mark_unchanged();
    }

    pub async fn nudged(&mut self) {
        if self.0.changed().await.is_err() {
            // Nobody is left to nudge.
            std::future::pending::<()>().await;
        }
    }
}
