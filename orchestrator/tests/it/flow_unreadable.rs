//! A row that this program can not read is left alone; the refunds beside it go on.

use crate::flow_memory::{Scripted, accepted, capabilities, submit};
use crate::store_sqlite::{SqliteEngine, open_temporary, sqlite3};
use crate::store_suite::Engine;
use jobs::ids::IntentId;
use jobs::refund::state::{PspStatus, State};
use orchestrator::clock::{Clock, SystemClock};
use orchestrator::lease::keeper::SessionIds;
use orchestrator::lease::{LeaseParameters, MemoryLeases, SessionKeeper};
use orchestrator::metrics::Metrics;
use orchestrator::randomness::Randomness;
use orchestrator::store::Store;
use orchestrator::work::wake::Wake;
use orchestrator::work::{PspLink, Worker, WorkerOptions, WorkerParts};
use rand::SeedableRng;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

async fn state_of(store: &dyn Store, id: &str) -> State {
    let id = IntentId::from_stored(id.to_owned());
    let page = store.list(&orchestrator::store::read::IntentFilter::default(), None, 10).await.unwrap();
    page.intents.iter().find(|intent| intent.intent_id == id).unwrap().state
}

#[tokio::test]
async fn a_message_of_an_unknown_kind_holds_up_only_its_own_refund() {
    let sqlite = Arc::new(open_temporary().await);
    assert_eq!(SqliteEngine(sqlite.clone()).raise_epoch().await, 1);
    let store: Arc<dyn Store> = sqlite.clone();
    for id in ["r-1", "r-2", "r-3"] {
        submit(store.as_ref(), id).await;
    }
    let message = "INSERT INTO intent_inbox (inbox_id, intent_id, source_id, message) VALUES (1, 'r-1', 's-1', '{\"of\":\"tomorrow\"}')";
    sqlite3(sqlite.file(), message).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let provider = Arc::new(Scripted::default());
    provider.creates.lock().unwrap().push_back(accepted(PspStatus::Succeeded));
    let keeper = Arc::new(SessionKeeper::new(
        Arc::new(MemoryLeases::new(clock.clone())),
        clock.clone(),
        LeaseParameters::default(),
        "test".to_owned(),
        Metrics::discarded(),
        SessionIds::new(rand::rngs::StdRng::seed_from_u64(1)),
    ));
    let worker = Worker::new(WorkerParts {
        store: store.clone(),
        keeper: keeper.clone(),
        links: vec![PspLink {
            psp: "acme".to_owned(),
            account: "a".to_owned(),
            provider,
            capabilities: capabilities(),
        }],
        clock,
        randomness: Arc::new(Randomness::from_seed(1)),
        metrics: Metrics::discarded(),
        wake: Wake::default(),
        options: WorkerOptions::default(),
    });
    let (stop, stopped) = watch::channel(false);
    let (keeper_stop, keeper_stopped) = watch::channel(false);
    let keeping = tokio::spawn(async move { keeper.run(keeper_stopped).await });
    let working = tokio::spawn(worker.run(stopped));
    let others = async {
        for id in ["r-2", "r-3"] {
            while state_of(store.as_ref(), id).await != State::Succeeded {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), others).await.expect("one unreadable row held up the others");
    assert_eq!(state_of(store.as_ref(), "r-1").await, State::Recorded);
    stop.send_replace(true);
    working.await.unwrap();
    keeper_stop.send_replace(true);
    keeping.await.unwrap();
}
