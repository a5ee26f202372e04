//! What tests of faults stand on: a database and a mock PSP of their own, replicas as real processes, and a judge.
//!
//! Every site has its own database on the one PostgreSQL of this test process (or its own SQLite file) and its own mock, so sites run
//! side by side. Replicas are `orchestrator serve` with short leases. Judged is by the mock's book and the ledger, never by what
//! a replica believes.

mod judge;
mod replica;
mod sqlite_file;

pub(crate) use judge::{final_story, judge_posted_once, judge_story, minor};
pub(crate) use replica::{Replica, Setup};
pub(crate) use sqlite_file::SqliteFile;

use crate::postgres_database;
use psp_mock::{BookQuery, BookedRefund, Config, Mock, Payment};
use serde_json::json;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use testbed::TempFolder;

/// Bounds every awaited event of other processes; generous because many of them may share two cores.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// How often the state of another process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Awaits a condition of another process by looking at it again and again.
pub(crate) async fn until<T, F>(what: &str, mut condition: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let found = tokio::time::timeout(SOON, async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    found.await.unwrap_or_else(|_| panic!("waited {SOON:?} for {what}"))
}

/// Where the intents are.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    Postgres { name: String },
    Sqlite { path: PathBuf },
}

/// A database, a mock PSP, and a folder for configurations.
pub(crate) struct Site {
    pub(crate) mock: Mock,
    pub(crate) database: Database,
    folder: TempFolder,
}

impl Site {
    pub(crate) async fn postgres(mock: Config) -> Self {
        let name = tokio::task::spawn_blocking(postgres_database::database).await.unwrap();
        let folder = TempFolder::new("faults").unwrap();
        Self { mock: Mock::start(mock).await.unwrap(), database: Database::Postgres { name }, folder }
    }

    pub(crate) async fn sqlite(mock: Config) -> Self {
        let folder = TempFolder::new("faults").unwrap();
        let path = folder.join("refunds.db");
        Self { mock: Mock::start(mock).await.unwrap(), database: Database::Sqlite { path }, folder }
    }

    pub(crate) fn database_url(&self) -> String {
        match &self.database {
            Database::Postgres { name } => postgres_database::server().url(name),
            Database::Sqlite { path } => format!("sqlite:{}", path.display()),
        }
    }

    /// A ready replica.
    pub(crate) async fn replica(&self, setup: Setup) -> Replica {
        Replica::start(self, setup).await
    }

    /// Puts a paid payment into the mock's book and on record.
    pub(crate) async fn payment(&self, replica: &Replica, id: &str, captured_minor: i64, currency: &str) {
        self.payments(replica, &[id.to_owned()], captured_minor, currency).await;
    }

    pub(crate) async fn payments(&self, replica: &Replica, ids: &[String], captured_minor: i64, currency: &str) {
        let paid = |id: &String| Payment {
            id: Some(format!("pi_{id}")),
            amount: captured_minor,
            currency: currency.to_ascii_lowercase(),
            ..Payment::default()
        };
        self.mock.add_payments(ids.iter().map(paid).collect()).unwrap();
        let record = |id: &String| {
            json!({ "payment_id": id, "psp": "acme", "psp_payment_ref": format!("pi_{id}"), "currency": currency,
                "amount_minor": captured_minor.to_string() })
        };
        let body = ids.iter().map(record).collect::<Vec<_>>();
        let reply = replica.post("/v1/payments", json!(body)).await;
        assert!(reply.status < 300, "{reply:?}");
    }

    /// The refunds that the PSP has really made for an intent.
    pub(crate) fn booked(&self, intent: &str) -> Vec<BookedRefund> {
        self.mock.book(&BookQuery { intent: Some(intent.to_owned()), ..BookQuery::default() }).refunds
    }
}
