//! `orchestrator doctor --config FILE`: checks what a replica needs, one line each, and changes nothing.

use super::client::reach;
use super::exit::{Exit, Failure};
use super::output::{print, print_json, say};
use super::serve::read_config;
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::lease::Leases;
use crate::node;
use crate::randomness::Randomness;
use crate::store::Store;
use crate::store::schema;
use crate::work::conditions::CLOCK_DIFFERENCE_MAX;
use chrono::TimeDelta;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Worth a word before it comes to that.
const CLOCK_DIFFERENCE_NOTED: TimeDelta = TimeDelta::seconds(2);
const PSP_ANSWER_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The replica's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: String,
    verdict: Verdict,
    detail: String,
}

/// Findings in the order they were made.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, check: &str, verdict: Verdict, detail: impl Into<String>) {
        self.0.push(Finding { check: check.to_owned(), verdict, detail: detail.into() });
    }
}

pub(crate) async fn run(args: DoctorArgs) -> Result<(), Failure> {
    let mut findings = Findings::default();
    match read_config(&args.config) {
        Ok(config) => {
            findings.add("configuration", Verdict::Ok, format!("{} is good", args.config.display()));
            if check_schema(&config, &mut findings).await {
                check_database(&config, &mut findings).await;
                check_standbys(&config, &mut findings).await;
            }
            check_psps(&config, &mut findings).await;
        }
        Err(failure) => findings.add("configuration", Verdict::Fail, failure.message.unwrap_or_default()),
    }
    let failed = findings.0.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
    if args.json {
        print_json(&findings.0)?;
    } else {
        for Finding { check, verdict, detail } in &findings.0 {
            let verdict = match verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Fail => "fail",
            };
            print(&format!("{verdict:<4}  {check:<16}  {}\n", detail.replace('\n', "\n                        ")))?;
        }
    }
    if failed == 0 {
        return Ok(());
    }
    say(&format!("{failed} of {} checks failed", findings.0.len()));
    Err(Failure { exit: Exit::Failed, message: None })
}

/// Whether the rest can be looked at: opening a database that lacks its schema would fail, or make one.
async fn check_schema(config: &Config, findings: &mut Findings) -> bool {
    match schema::pending(&config.database.url).await {
        Ok(pending) if pending.is_empty() => {
            findings.add("schema", Verdict::Ok, "up to date");
            return true;
        }
        Ok(pending) => {
            let versions: Vec<_> = pending.iter().map(|migration| format!("{:04}", migration.version)).collect();
            let detail = format!("pending: {}; run `orchestrator migrate --config FILE`", versions.join(", "));
            findings.add("schema", Verdict::Fail, detail);
        }
        Err(error) => findings.add("schema", Verdict::Fail, error.to_string()),
    }
    false
}

async fn check_database(config: &Config, findings: &mut Findings) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let parameters = match node::lease_parameters(config) {
        Ok(parameters) => parameters,
        Err(error) => return findings.add("leases", Verdict::Fail, error.to_string()),
    };
    let opened = node::open_database(&config.database, clock.clone(), &Randomness::from_os(), &parameters).await;
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => return findings.add("database", Verdict::Fail, error.to_string()),
    };
    let before = clock.wall();
    match opened.store.now().await {
        Ok(now) => {
            let took = clock.wall() - before;
            findings.add("database", Verdict::Ok, format!("answers in {} ms", took.num_milliseconds()));
            check_clocks(now - (before + took / 2), findings);
            check_refunds(&*opened.store, findings).await;
            check_leases(config, &*opened.leases, findings).await;
        }
        Err(error) => findings.add("database", Verdict::Fail, error.to_string()),
    }
}

async fn check_leases(config: &Config, leases: &dyn Leases, findings: &mut Findings) {
    let sessions = match leases.live_sessions().await {
        Ok(sessions) => sessions.len(),
        Err(error) => return findings.add("leases", Verdict::Fail, error.to_string()),
    };
    match schema::current_epoch(&config.database.url).await {
        Ok(Some(current)) if current.backend == leases.backend() => {
            let detail = format!("{sessions} replicas have a session; epoch {} of {}", current.epoch, current.backend);
            findings.add("leases", Verdict::Ok, detail);
        }
        Ok(Some(current)) => {
            let (known, ours) = (current.backend, leases.backend());
            let detail =
                format!("the database knows lease service {known} as the current one, the configuration says {ours}");
            findings.add("leases", Verdict::Fail, detail);
        }
        Ok(None) => {
            findings.add("leases", Verdict::Ok, "no replica has had a session yet: the first one registers epoch 1")
        }
        Err(error) => findings.add("leases", Verdict::Fail, error.to_string()),
    }
}

async fn check_refunds(store: &dyn Store, findings: &mut Findings) {
    match store.backlog().await {
        Ok(backlog) if backlog.unknown_machine_version > 0 => {
            let detail =
                format!("{} refunds of another machine version are left alone", backlog.unknown_machine_version);
            findings.add("refunds", Verdict::Warn, detail);
        }
        Ok(_) => findings.add("refunds", Verdict::Ok, "all of a machine version this program runs"),
        Err(error) => findings.add("refunds", Verdict::Fail, error.to_string()),
    }
}

fn check_clocks(difference: TimeDelta, findings: &mut Findings) {
    let detail = format!("the database's clock is {} ms away from this host's", difference.num_milliseconds());
    if difference.abs() > CLOCK_DIFFERENCE_MAX {
        findings.add(
            "clocks",
            Verdict::Fail,
            format!(
                "{detail}: no creates are sent beyond {} s; repair time synchronisation",
                CLOCK_DIFFERENCE_MAX.num_seconds()
            ),
        );
    } else if difference.abs() > CLOCK_DIFFERENCE_NOTED {
        findings.add("clocks", Verdict::Warn, format!("{detail}: check time synchronisation"));
    } else {
        findings.add("clocks", Verdict::Ok, detail);
    }
}

async fn check_standbys(config: &Config, findings: &mut Findings) {
    match schema::standbys(&config.database.url).await {
        Ok(None) => {
            findings.add("standby", Verdict::Warn, "SQLite is one host: what it acknowledged is as safe as its disk")
        }
        Ok(Some(standbys)) if standbys.connected == 0 && standbys.synchronous_names.is_empty() => {
            findings.add(
                "standby",
                Verdict::Ok,
                "no standby is connected, so none can be promoted without what was acknowledged",
            );
        }
        Ok(Some(standbys)) if standbys.synchronous == 0 => {
            let detail = format!(
                "{} standbys are connected and commits wait for none: one that is promoted may lack acknowledged refunds; set synchronous_standby_names",
                standbys.connected
            );
            findings.add("standby", Verdict::Warn, detail);
        }
        Ok(Some(standbys)) => {
            findings.add(
                "standby",
                Verdict::Ok,
                format!("commits wait for a standby, {} of {} connected", standbys.synchronous, standbys.connected),
            );
        }
        Err(error) => findings.add("standby", Verdict::Fail, error.to_string()),
    }
}

async fn check_psps(config: &Config, findings: &mut Findings) {
    for psp in &config.psps {
        let check = format!("psp {}", psp.name);
        match reach(&psp.base_url, PSP_ANSWER_MAX).await {
            Ok(()) => findings.add(&check, Verdict::Ok, format!("{} answers; the key was not tried", psp.base_url)),
            Err(cause) => findings.add(&check, Verdict::Fail, format!("{} does not answer: {cause}", psp.base_url)),
        }
    }
}
