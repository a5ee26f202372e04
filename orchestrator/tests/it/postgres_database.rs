//! Migrated databases on the one PostgreSQL of this test process.

use orchestrator::store::migrate;
use std::sync::OnceLock;
use testbed::{Postgres, shared_postgres};

pub(crate) fn server() -> &'static Postgres {
    shared_postgres()
}

/// A database of one's own with the current schema, cloned from one that was migrated once.
pub(crate) fn database() -> String {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    let template = TEMPLATE.get_or_init(|| {
        let name = server().create_database().unwrap();
        let url = secrecy::SecretString::from(server().url(&name));
        // A thread without a runtime, since tests may call this from inside one.
        let migrated = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(migrate::migrate(&url))
                })
                .join()
        });
        migrated.unwrap().unwrap();
        name
    });
    server().clone_database(template).unwrap()
}
