//! Every step of a hold on SQLite is failed, repeated, cut by SIGKILL and answered late: two processes of one host on one file.
//!
//! There is no wire to hold. A planted trigger makes the step's own transaction fail or last; the file's write lock, taken at the right
//! moment, keeps a replica in front of a step. An answer of the file is never lost, so "repeated" means here: the transaction
//! lasts beyond the caller's time limit (claim, release) or beyond the lease itself (install, commit), and then takes effect.

use crate::faults_site::{Database, Replica, Setup, Site, SqliteFile, judge_posted_once, until};
use crate::faults_steps::{Fault, Step, every_row};
use psp_mock::Config;
use std::time::Duration;
use testbed::{Hold, Proxy, When};

const INTENT: &str = "r-1";
const AMOUNT: i64 = 1_000;
const CREATE: &str = "POST /v1/refunds";
const PLANTED: &str = "planted fault";
/// Beyond the time limit of a lease call, which is a fifth of the TTL.
const BEYOND_LEASE_CALL: Duration = Duration::from_millis(1_500);
const BEYOND_LEASE: Duration = Duration::from_millis(4_000);
/// Long enough to be killed in the middle.
const UNTIL_KILLED: Duration = Duration::from_secs(30);

const TURNS: usize = 10;

const SUBMITTED: &str = "SELECT 1 FROM refund_intents WHERE NOT EXISTS (SELECT 1 FROM lease_holds)";
const CLAIMED: &str = "SELECT 1 FROM lease_holds WHERE NOT EXISTS (SELECT 1 FROM refund_attempts)";
const COMMITTED: &str = "SELECT 1 FROM lease_holds WHERE EXISTS (SELECT 1 FROM refund_outcomes)";
const ATTEMPTS: &str = "SELECT count(*) FROM refund_attempts";
const OUTCOMES: &str = "SELECT count(*) FROM refund_outcomes";

struct Shared {
    site: Site,
    psp: Proxy,
    file: SqliteFile,
    a: Replica,
}

impl Shared {
    async fn start() -> Self {
        let site = Site::sqlite(Config::default()).await;
        let psp = Proxy::start(site.mock.address()).unwrap();
        let psp_url = Some(format!("http://{}", psp.address()));
        let a = site.replica(Setup { psp_url, ..Setup::default() }).await;
        site.payment(&a, "p-1", 10_000, "EUR").await;
        let Database::Sqlite { path } = &site.database else { unreachable!() };
        let file = SqliteFile::open(path).await;
        Self { site, psp, file, a }
    }

    async fn submit(&self) {
        self.a.submit(INTENT, "p-1", AMOUNT, "EUR").await;
    }

    async fn ends_once(&self) -> Replica {
        let b = self.site.replica(Setup::default()).await;
        judge_posted_once(&self.site, &b, INTENT, AMOUNT).await;
        b
    }

    /// Keeps A in front of the step by the write lock.
    async fn stop_before(&mut self, step: Step) {
        let Self { file, a, site, psp } = self;
        let condition = match step {
            Step::Claim => SUBMITTED,
            Step::Install => CLAIMED,
            Step::Release => COMMITTED,
            Step::Commit | Step::Call => {
                let answer = psp.hold_when(When::answer_to(CREATE));
                a.submit(INTENT, "p-1", AMOUNT, "EUR").await;
                answer.held().await.unwrap();
                if step == Step::Commit {
                    file.lock_when("SELECT 1").await;
                    answer.release();
                    let answered = || async { (site.mock.totals().calls_in_flight == 0).then_some(()) };
                    until("the create to be answered", answered).await;
                }
                return;
            }
        };
        let ((), ()) = tokio::join!(a.submit(INTENT, "p-1", AMOUNT, "EUR"), file.lock_when(condition));
        if step == Step::Install {
            assert_eq!(file.count(ATTEMPTS).await, 0, "the moment before the install was missed");
            // It has its token; after some more turns of its loops it has planned as well, and waits for the lock.
            until("the claim to be answered", || async { (a.metric("lock_acquire_total").await > 0).then_some(()) })
                .await;
            for _ in 0..TURNS {
                assert_eq!(a.get(&format!("/v1/refunds/{INTENT}")).await.status, 200);
            }
        }
    }
}

/// The call touches no file, so the wire to the PSP is where it is held.
async fn call_row(fault: Fault) {
    let shared = Shared::start().await;
    let Shared { psp, a, site, .. } = &shared;
    let executed = matches!(fault, Fault::Repeated | Fault::Late);
    let hold: Hold = psp.hold_when(if executed { When::answer_to(CREATE) } else { When::to_server(CREATE) });
    shared.submit().await;
    hold.held().await.unwrap();
    match fault {
        Fault::Failed | Fault::Repeated => {
            hold.cut();
            shared.ends_once().await;
        }
        Fault::Killed => {
            a.kill().await;
            let b = shared.ends_once().await;
            hold.release();
            judge_posted_once(site, &b, INTENT, AMOUNT).await;
        }
        Fault::Late => {
            a.stand_still().await;
            let b = shared.ends_once().await;
            hold.release();
            a.process.resume().unwrap();
            a.late_answer(INTENT).await;
            judge_posted_once(site, &b, INTENT, AMOUNT).await;
        }
    }
}

async fn file_row(step: Step, fault: Fault) {
    let mut shared = Shared::start().await;
    match fault {
        Fault::Failed => {
            shared.file.plant_failure(step).await;
            shared.submit().await;
            let told = |line: &str| line.contains(PLANTED);
            shared.a.process.wait_line(crate::faults_site::SOON, told).await.unwrap();
            shared.file.mend().await;
            shared.ends_once().await;
        }
        Fault::Repeated => {
            let on_lease = matches!(step, Step::Claim | Step::Release);
            shared.file.plant_slowness(step, if on_lease { BEYOND_LEASE_CALL } else { BEYOND_LEASE }).await;
            shared.submit().await;
            shared.file.somebody_is_in_the_middle().await;
            shared.file.mend().await;
            shared.ends_once().await;
        }
        Fault::Killed => {
            shared.file.plant_slowness(step, UNTIL_KILLED).await;
            shared.submit().await;
            shared.file.somebody_is_in_the_middle().await;
            shared.a.kill().await;
            shared.file.mend().await;
            shared.ends_once().await;
        }
        Fault::Late => late_row(shared, step).await,
    }
}

/// A stands still in front of the step, B ends the intent, A goes on.
async fn late_row(mut shared: Shared, step: Step) {
    shared.stop_before(step).await;
    shared.a.stand_still().await;
    shared.file.unlock().await;
    let b = shared.ends_once().await;
    let outcomes = shared.file.count(OUTCOMES).await;
    shared.a.process.resume().unwrap();
    match step {
        Step::Install => {
            until("the fence to refuse the late install", || async {
                (shared.a.metric("fence_reject_total").await > 0).then_some(())
            })
            .await;
        }
        Step::Commit => {
            shared.a.late_answer(INTENT).await;
        }
        Step::Claim | Step::Release | Step::Call => {}
    }
    shared.a.is_ready().await;
    judge_posted_once(&shared.site, &b, INTENT, AMOUNT).await;
    let more = shared.file.count(OUTCOMES).await - outcomes;
    assert!(more <= i64::from(step == Step::Commit), "{step:?}: {more} outcomes were added late");
}

async fn row(step: Step, fault: Fault) {
    if step == Step::Call { call_row(fault).await } else { file_row(step, fault).await }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_on_sqlite_is_failed_repeated_killed_and_late_and_each_intent_ends_once() {
    every_row(row).await;
}
