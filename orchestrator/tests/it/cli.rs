//! The real binary against a server of this process: exit codes, stdout and stderr.

use crate::api::Server;
use crate::postgres_database::{database, server};
use jobs::refund::state::State;
use std::process::{Output, Stdio};
use tokio::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_orchestrator");

fn command(server: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env_clear().env("ORCHESTRATOR_SERVER", server).stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn run(server: &str, arguments: &[&str]) -> Output {
    command(server, arguments).output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn check(server: &str, arguments: &[&str], exit: i32, in_stdout: &str, in_stderr: &str) {
    let output = run(server, arguments).await;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}\nstdout {stdout}\nstderr {stderr}");
    assert!(stdout.contains(in_stdout), "{arguments:?}: stdout {stdout}");
    assert!(stderr.contains(in_stderr), "{arguments:?}: stderr {stderr}");
}

/// A folder of this test, removed at its end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("orchestrator-cli-test-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn every_verb_ends_with_the_exit_code_that_scripts_rely_on() {
    let server = Server::start().await;
    server.payment("p-1", 10_000, "EUR").await;
    server.refund_in("r-parked", State::NeedsReview).await;
    server.refund_in("r-done", State::Succeeded).await;
    let submit = |intent: &'static str, amount: &'static str, currency: &'static str| {
        ["refund", "submit", "--intent-id", intent, "--payment-id", "p-1", "--amount", amount, "--currency", currency]
    };
    let url = server.url.as_str();
    check(url, &submit("r-1", "40.00", "EUR"), 0, "r-1      40.00  EUR  pending", "recorded").await;
    check(url, &submit("r-1", "40.00", "EUR"), 0, "r-1", "on record already").await;
    check(url, &submit("r-1", "50.00", "EUR"), 4, "", "intent_conflict").await;
    check(url, &submit("r-2", "60.01", "EUR"), 4, "", "60.00 EUR of payment p-1 can still be refunded").await;
    check(url, &submit("r-2", "1.00", "GBP"), 4, "", "payment_mismatch").await;
    check(url, &submit("r-2", "-50.00", "EUR"), 2, "", "invalid_amount").await;
    check(url, &submit("r-2", "1e3", "EUR"), 2, "", "invalid_amount").await;
    check(url, &submit("r 2", "1.00", "EUR"), 2, "", "invalid_identifier").await;
    check(url, &["refund", "submit", "--intent-id", "r-2"], 2, "", "Usage:").await;
    for (arguments, exit, in_stdout, in_stderr) in [
        (&["refund", "show", "r-parked"][..], 0, "What happens next: Nothing by itself.", ""),
        (&["refund", "show", "re_r-done"], 0, "Refund r-done is succeeded", ""),
        (&["refund", "show", "r-parked", "--json"], 0, "\"why_it_waits\"", ""),
        (&["refund", "show", "nothing"], 3, "", "refund_unknown"),
        (&["refund", "list"], 0, "INTENT", ""),
        (&["refund", "list", "--state", "succeeded", "--json"], 0, "{\"refunds\":[{\"intent_id\":\"r-done\"", ""),
        (&["refund", "list", "--limit", "1"], 0, "r-1", "--cursor"),
        (&["refund", "list", "--state", "done"], 2, "", "invalid_query"),
        (&["refund", "replay", "r-parked", "--reason", "look again"], 0, "", "is looked at now"),
        (&["refund", "replay", "r-done", "--reason", "look again"], 4, "", "replay_not_legal"),
        (&["refund", "replay", "r-done"], 2, "", "--reason"),
        (&["refund", "cancel", "r-done", "--reason", "x"], 4, "", "cancel_refused"),
        (&["refund", "cancel", "nothing", "--reason", "x"], 3, "", "refund_unknown"),
        (&["payment", "show", "p-1"], 0, "refundable     60.00 EUR", ""),
        (&["payment", "show", "p-9"], 3, "", "payment_unknown"),
        (&["ledger", "balances"], 0, "psp_clearing:acme:EUR", ""),
        (&["psp", "list"], 0, "acme  acct_1   stripe  running", ""),
        (&["psp", "pause", "acme", "--reason", "a drill"], 0, "", "PSP acme is paused"),
        (&["psp", "list"], 0, "paused", ""),
        (&["psp", "resume", "acme", "--reason", "over"], 0, "", "PSP acme is resumed"),
        (&["psp", "resume", "acme", "--reason", "over"], 4, "", "psp_not_paused"),
        (&["psp", "pause", "other", "--reason", "x"], 3, "", "psp_unknown"),
        (&["psp", "list", "--server", "nonsense"], 2, "", "--server"),
        (&["no-such-verb"], 2, "", "no-such-verb"),
        (&["--help"], 0, "refund", ""),
        (&["--version"], 0, "orchestrator", ""),
    ] {
        check(url, arguments, exit, in_stdout, in_stderr).await;
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_a_failure_that_says_what_to_do() {
    // Bound and not listening: nothing else can take the port meanwhile.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    for arguments in [&["refund", "list"][..], &["refund", "show", "r-1"], &["psp", "list"], &["ledger", "balances"]] {
        check(&url, arguments, 1, "", "orchestrator serve").await;
    }
}

#[tokio::test]
async fn an_import_with_a_bad_line_imports_nothing() {
    let server = Server::start().await;
    let folder = Folder::new();
    let head = "payment_id,psp,psp_payment_ref,currency,amount\n";
    let good = "p-1,acme,pi_1,EUR,10.00\np-2,acme,pi_2,JPY,500\n";
    let bad = folder.file("bad.csv", &format!("{head}{good}p-3,acme,pi_3,EUR,ten\n"));
    check(&server.url, &["payment", "import", &bad], 2, "", "line 4: the amount holds 't'").await;
    assert_eq!(server.get("/v1/payments/p-1").await.status, 404);
    let fine = folder.file("fine.csv", &format!("{head}{good}"));
    check(
        &server.url,
        &["payment", "import", &fine, "--json"],
        0,
        "{\"inserted\":2,\"same\":0}",
        "2 payments imported",
    )
    .await;
    check(&server.url, &["payment", "import", &fine], 0, "", "2 were on record already").await;
    let other = folder.file("other.csv", &format!("{head}p-1,acme,pi_1,EUR,11.00\n"));
    check(&server.url, &["payment", "import", &other], 4, "", "payment_conflict").await;
    check(&server.url, &["payment", "import", "no-such.csv"], 2, "", "no-such.csv").await;
}

#[tokio::test]
async fn a_reader_that_closes_the_pipe_ends_the_command_quietly() {
    let server = Server::start().await;
    server.payment("p-1", 100_000, "EUR").await;
    // More than a pipe holds, so that the writer meets the closed end.
    for n in 0..300 {
        assert_eq!(server.refund(&format!("r-{n}"), "p-1", 1, "EUR").await.status, 202);
    }
    let arguments = ["refund", "list", "--limit", "500", "--json"];
    let mut child = command(&server.url, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[tokio::test]
async fn a_configuration_is_checked_without_starting_anything() {
    let folder = Folder::new();
    let database = folder.0.join("db.sqlite");
    let good = format!(
        "environment = \"test\"\n[database]\nurl = \"sqlite:{}\"\n[[psp]]\nname = \"acme\"\naccount = \"a\"\nkind = \"stripe\"\nbase_url = \"http://127.0.0.1:1\"\napi_key = \"k\"\n",
        database.display()
    );
    let file = folder.file("good.toml", &good);
    check("", &["serve", "--config", &file, "--check"], 0, "", "is good").await;
    check(
        "",
        &["serve", "--config", &folder.file("bad.toml", &good.replace("sqlite", "redis")), "--check"],
        2,
        "",
        "database.url",
    )
    .await;
    check("", &["serve", "--config", "missing.toml"], 2, "", "missing.toml").await;
    check("", &["serve"], 2, "", "--config").await;
    assert!(!database.exists());
    check("", &["migrate", "--config", &file, "--dry-run"], 0, "", "pending 0001").await;
    check("", &["migrate", "--config", &file, "--print-sql"], 0, "CREATE TABLE", "").await;
    assert!(!database.exists());
    check("", &["migrate", "--print-sql"], 0, "CREATE TABLE payments", "").await;
    check("", &["migrate"], 2, "", "--database-url").await;
    // The PSP of this file is not there, and the schema is not either.
    check("", &["doctor", "--config", &file], 1, "fail  schema", "checks failed").await;
    check("", &["migrate", "--config", &file], 0, "", "up to date").await;
    check("", &["doctor", "--config", &file], 1, "ok    schema            up to date", "1 of").await;
}

#[tokio::test]
async fn migrate_grants_a_role_that_was_made_after_the_schema() {
    let name = database();
    let asked = "has_table_privilege('refund_runtime', 'refund_intents', 'UPDATE')";
    let role = "DO $$ BEGIN CREATE ROLE refund_runtime; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
        REVOKE ALL ON refund_intents FROM refund_runtime";
    server().must_psql(&name, role).unwrap();
    assert!(server().must_psql(&name, &format!("SELECT {asked}")).unwrap().contains('f'));
    check("", &["migrate", "--database-url", &server().url(&name)], 0, "", "up to date").await;
    assert!(server().must_psql(&name, &format!("SELECT {asked}")).unwrap().contains('t'));
}

#[tokio::test]
async fn migrate_and_doctor_work_on_postgres_and_serve_waits_for_migrate() {
    let server = testbed::shared_postgres();
    let url = server.url(&server.create_database().unwrap());
    let psp = Server::start().await;
    let folder = Folder::new();
    let file = folder.file(
        "postgres.toml",
        &format!(
            "environment = \"test\"\n[database]\nurl = \"{url}\"\n[api]\nlisten = \"127.0.0.1:0\"\n[[psp]]\nname = \"acme\"\naccount = \"a\"\nkind = \"stripe\"\nbase_url = \"{}\"\napi_key = \"k\"\n",
            psp.url
        ),
    );
    check("", &["serve", "--config", &file], 1, "", "run `orchestrator migrate --config FILE`").await;
    check("", &["doctor", "--config", &file], 1, "fail  schema", "").await;
    check("", &["migrate", "--database-url", &url, "--dry-run"], 0, "", "pending 0001").await;
    check("", &["migrate", "--config", &file], 0, "", "applying 0001").await;
    check("", &["migrate", "--config", &file], 0, "", "the schema is up to date").await;
    let output = run("", &["doctor", "--config", &file, "--json"]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks: Vec<_> = findings.as_array().unwrap().iter().map(|row| row["check"].as_str().unwrap()).collect();
    let expected = ["configuration", "schema", "database", "clocks", "refunds", "leases", "standby", "psp acme"];
    assert_eq!(checks, expected, "{findings}");
}
