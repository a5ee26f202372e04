//! Processes are watched, paused and ended, and nothing outlives the test process.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::time::Duration;

use testbed::{Error, Exit, Postgres, Process, Program, TempFolder, is_running, shared_postgres, wait};

const SOON: Duration = Duration::from_secs(30);
const AT_ONCE: Duration = Duration::from_millis(50);
/// Set for the copy of this test program that plays the test process to be killed.
const VICTIM: &str = "TESTBED_VICTIM";

fn shell(script: &str) -> Program {
    Program::new("/bin/sh").args(["-c", script])
}

#[tokio::test]
async fn a_command_ends_with_its_output_and_code() {
    let folder = TempFolder::new("process").unwrap();
    let program = shell("pwd; echo \"$WORD\" >&2; exit 3").env("WORD", "hello there").folder(folder.path());
    let finished = program.run(SOON).await.unwrap();
    assert_eq!(finished.exit, Exit::Code(3));
    assert_eq!(finished.stdout, format!("{}\n", folder.path().display()));
    assert_eq!(finished.stderr, "hello there\n");
}

#[tokio::test]
async fn a_line_is_awaited_and_its_absence_is_explained() {
    let process = shell("echo first; echo listening on 1 >&2; exec tail -f /dev/null").spawn().unwrap();
    let line = process.wait_line(SOON, |line| line.starts_with("listening")).await.unwrap();
    assert_eq!(line, "listening on 1");
    let late = process.wait_line(AT_ONCE, |line| line == "never").await.unwrap_err();
    assert!(matches!(&late, Error::TimedOut { context, .. } if context.contains("first")), "{late}");

    let ended = shell("echo cannot start; exit 7").spawn().unwrap();
    let error = ended.wait_line(SOON, |line| line == "ready").await.unwrap_err();
    assert!(matches!(&error, Error::Ended { exit: Exit::Code(7), last_lines, .. } if last_lines == "cannot start\n"));
}

#[tokio::test(start_paused = true)]
async fn waiting_uses_real_time_where_the_test_has_paused_its_clock() {
    let process = shell("sleep 0.2; echo done").spawn().unwrap();
    process.wait_line(SOON, |line| line == "done").await.unwrap();
}

#[tokio::test]
async fn signals_reach_the_process_itself() {
    let asked = shell("trap 'echo leaving; exit 0' TERM; echo up; while :; do sleep 0.01; done").spawn().unwrap();
    asked.wait_line(SOON, |line| line == "up").await.unwrap();
    asked.pause().unwrap();
    asked.terminate().unwrap();
    assert!(asked.wait_exit(AT_ONCE).await.is_err(), "a paused process handles nothing");
    asked.resume().unwrap();
    assert_eq!(asked.wait_exit(SOON).await.unwrap(), Exit::Code(0));
    assert_eq!(asked.output(), "up\nleaving\n");

    let killed = shell("exec tail -f /dev/null").spawn().unwrap();
    killed.kill().unwrap();
    assert_eq!(killed.wait_exit(SOON).await.unwrap(), Exit::Signal(9));
}

#[tokio::test]
async fn a_dropped_process_is_gone_even_while_paused() {
    let process = shell("exec tail -f /dev/null").spawn().unwrap();
    let pid = process.pid();
    process.pause().unwrap();
    drop(process);
    assert!(!is_running(pid));
}

#[test]
fn a_missing_program_is_named() {
    assert!(matches!(Program::new("/no/such/program").spawn(), Err(Error::NoProgram { .. })));
}

#[tokio::test]
async fn a_killed_test_process_leaves_nothing() {
    let victim = start_victim("kill").await;
    let (pids, folder) = what_it_started(&victim).await;
    assert!(pids.iter().all(|pid| is_running(*pid)));
    victim.kill().unwrap();
    assert_eq!(victim.wait_exit(SOON).await.unwrap(), Exit::Signal(9));
    wait("the servers and the folder of a killed test to go", SOON, || {
        (!pids.iter().any(|pid| is_running(*pid)) && !folder.exists()).then_some(())
    })
    .unwrap();
}

#[tokio::test]
async fn a_failed_test_process_leaves_nothing() {
    let victim = start_victim("fail").await;
    let (pids, folder) = what_it_started(&victim).await;
    assert!(!victim.wait_exit(SOON).await.unwrap().success());
    wait("the servers and the folder of a failed test to go", SOON, || {
        (!pids.iter().any(|pid| is_running(*pid)) && !folder.exists()).then_some(())
    })
    .unwrap();
}

async fn start_victim(how: &str) -> Process {
    let this = std::env::current_exe().unwrap();
    Program::new(this).args(["--exact", "plays_the_victim", "--nocapture"]).env(VICTIM, how).spawn().unwrap()
}

async fn what_it_started(victim: &Process) -> (Vec<u32>, std::path::PathBuf) {
    let line = victim.wait_line(Duration::from_secs(90), |line| line.contains("started ")).await.unwrap();
    let (_, words) = line.split_once("started ").unwrap();
    let words: Vec<&str> = words.split(' ').collect();
    let (folder, pids) = words.split_last().unwrap();
    (pids.iter().map(|pid| pid.parse().unwrap()).collect(), folder.into())
}

/// Does nothing as a test; started by the tests above, it is a test process that starts servers and dies.
#[test]
fn plays_the_victim() {
    let Ok(how) = std::env::var(VICTIM) else { return };
    let shared: &Postgres = shared_postgres();
    let process = shell("exec tail -f /dev/null").spawn().unwrap();
    process.pause().unwrap();
    println!("started {} {} {}", shared.pid(), process.pid(), shared.folder().path().display());
    assert_ne!(how, "fail", "fails as asked, with a server running");
    wait("being killed", Duration::from_secs(120), || None::<()>).unwrap();
}
