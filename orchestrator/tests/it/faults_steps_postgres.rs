//! Every step of a hold on PostgreSQL is failed, repeated, cut by SIGKILL and answered late.
//!
//! Replica A speaks to the database and to the PSP through wire proxies that hold the step's own bytes; replica B, started once
//! A is held, speaks to both directly. sqlx sends a statement's text once for each connection, so a text stands for its first use.

use crate::faults_site::{Replica, Setup, Site, judge_posted_once, until};
use crate::faults_steps::{Fault, Step, every_row};
use crate::postgres_database::server;
use psp_mock::Config;
use testbed::{Hold, Postgres, Proxy, When};

const INTENT: &str = "r-1";
const AMOUNT: i64 = 1_000;
/// The lease's key, as a bound value: first in the claim, then in the release.
const LEASE_KEY: &str = "intent/r-1";
const INSTALL: &str = "UPDATE refund_intents AS i";
const ATTEMPT: &str = "INSERT INTO refund_attempts";
const CREATE: &str = "POST /v1/refunds";

/// Replica A and the wires that lead to it.
struct Wired {
    site: Site,
    database: Proxy,
    psp: Proxy,
    a: Replica,
}

impl Wired {
    async fn start() -> Self {
        let site = Site::postgres(Config::default()).await;
        let crate::faults_site::Database::Postgres { name } = &site.database else { unreachable!() };
        let database = Proxy::start(server().address()).unwrap();
        let psp = Proxy::start(site.mock.address()).unwrap();
        let setup = Setup {
            database_url: Some(Postgres::url_at(database.address(), name)),
            psp_url: Some(format!("http://{}", psp.address())),
            ..Setup::default()
        };
        let a = site.replica(setup).await;
        site.payment(&a, "p-1", 10_000, "EUR").await;
        Self { site, database, psp, a }
    }

    async fn submit(&self) {
        self.a.submit(INTENT, "p-1", AMOUNT, "EUR").await;
    }

    /// Submits the refund and holds the bytes on which this row turns: the step's request, or its answer when it is to be repeated.
    async fn reach(&self, step: Step, fault: Fault) -> Hold {
        let after_effect = fault == Fault::Repeated;
        let hold = match step {
            Step::Claim | Step::Release => {
                let when = if after_effect { When::answer_to(LEASE_KEY) } else { When::to_server(LEASE_KEY) };
                let hold = self.database.hold_when(when.nth(if step == Step::Claim { 1 } else { 2 }));
                self.submit().await;
                hold
            }
            Step::Install if after_effect => {
                let attempt = self.database.hold_when(When::to_server(ATTEMPT));
                self.submit().await;
                self.commit_behind(attempt).await
            }
            Step::Install => {
                let hold = self.database.hold_when(When::to_server(INSTALL));
                self.submit().await;
                hold
            }
            Step::Call => {
                let executed = after_effect || fault == Fault::Late;
                let when = if executed { When::answer_to(CREATE) } else { When::to_server(CREATE) };
                let hold = self.psp.hold_when(when);
                self.submit().await;
                hold
            }
            Step::Commit => {
                let answer = self.psp.hold_when(When::answer_to(CREATE));
                self.submit().await;
                answer.held().await.unwrap();
                let refund = self.site.booked(INTENT).remove(0).id;
                let outcome = self.database.hold_when(When::to_server(refund));
                answer.release();
                if after_effect { self.commit_behind(outcome).await } else { outcome }
            }
        };
        hold.held().await.unwrap();
        hold
    }

    /// From a held statement to the answer of the COMMIT that follows it.
    async fn commit_behind(&self, statement: Hold) -> Hold {
        statement.held().await.unwrap();
        let commit = self.database.hold_when(When::answer_to("COMMIT"));
        statement.release();
        commit
    }

    async fn successor(&self) -> Replica {
        self.site.replica(Setup::default()).await
    }
}

async fn row(step: Step, fault: Fault) {
    let wired = Wired::start().await;
    let Wired { site, a, .. } = &wired;
    let hold = wired.reach(step, fault).await;
    match fault {
        Fault::Failed | Fault::Repeated => {
            hold.cut();
            let b = wired.successor().await;
            judge_posted_once(site, &b, INTENT, AMOUNT).await;
        }
        Fault::Killed => {
            a.kill().await;
            let b = wired.successor().await;
            judge_posted_once(site, &b, INTENT, AMOUNT).await;
            // What the dead replica had sent arrives after all.
            hold.release();
            judge_posted_once(site, &b, INTENT, AMOUNT).await;
        }
        Fault::Late => {
            a.stand_still().await;
            let b = wired.successor().await;
            judge_posted_once(site, &b, INTENT, AMOUNT).await;
            hold.release();
            a.process.resume().unwrap();
            expect_refused(step, a).await;
            judge_posted_once(site, &b, INTENT, AMOUNT).await;
        }
    }
    let counters = site.mock.counters(INTENT).unwrap();
    let sent_twice = step == Step::Call && matches!(fault, Fault::Failed | Fault::Killed);
    assert!(counters.creates_received <= if sent_twice { 2 } else { 1 }, "{step:?} x {fault:?}: {counters:?}");
}

/// What a replica that comes back too late must have noticed.
async fn expect_refused(step: Step, a: &Replica) {
    match step {
        Step::Install => {
            // On a slow machine its own time limit has passed as well, and that is what it notices first.
            let gave_up = || a.process.output().contains("a write was not answered");
            until("the fence to refuse the late install", || async {
                (gave_up() || a.metric("fence_reject_total").await > 0).then_some(())
            })
            .await;
        }
        Step::Call | Step::Commit => {
            a.late_answer(INTENT).await;
        }
        Step::Claim | Step::Release => {}
    }
    a.is_ready().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_on_postgresql_is_failed_repeated_killed_and_late_and_each_intent_ends_once() {
    every_row(row).await;
}
