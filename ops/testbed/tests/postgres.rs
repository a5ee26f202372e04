//! A private PostgreSQL starts, keeps acknowledged rows across a kill, and goes with the test process.

use testbed::{Postgres, PostgresOptions, shared_postgres};

#[test]
fn a_server_answers_and_a_refused_statement_says_so() {
    let server = shared_postgres();
    let database = server.create_database().unwrap();
    let answer = server.psql(&database, "SELECT 1, 'two';").unwrap();
    assert_eq!((answer.stdout.as_str(), answer.code), ("1|two\n", 0), "{}", answer.stderr);
    let refused = server.psql(&database, "CREATE TABLE t (n int); SELECT n FROM missing; DROP TABLE t;").unwrap();
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("missing"), "{}", refused.stderr);
    assert_eq!(server.must_psql(&database, "SELECT count(*) FROM t").unwrap(), "0\n");
}

#[test]
fn databases_are_apart_and_can_be_cloned() {
    let server = shared_postgres();
    let first = server.create_database().unwrap();
    let second = server.create_database().unwrap();
    assert_ne!(first, second);
    server.must_psql(&first, "CREATE TABLE t AS SELECT 7 AS n").unwrap();
    let copy = server.clone_database(&first).unwrap();
    assert_eq!(server.must_psql(&copy, "SELECT n FROM t").unwrap(), "7\n");
    assert_eq!(server.psql(&second, "SELECT n FROM t").unwrap().code, 3);
}

#[test]
fn acknowledged_rows_survive_a_kill_and_a_restart_on_the_same_port() {
    let mut server = Postgres::start(PostgresOptions::default().setting("work_mem", "5MB")).unwrap();
    let (port, first_pid) = (server.port(), server.pid());
    assert_eq!(server.must_psql("postgres", "SHOW work_mem").unwrap(), "5MB\n");
    server.must_psql("postgres", "CREATE TABLE t AS SELECT 1 AS n").unwrap();
    server.kill().unwrap();
    assert_eq!(server.psql("postgres", "SELECT 1").unwrap().code, 2);
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), first_pid);
    assert_eq!(server.must_psql("postgres", "SELECT n FROM t").unwrap(), "1\n");
    server.restart().unwrap();
    assert_eq!(server.must_psql("postgres", "SELECT n FROM t").unwrap(), "1\n");
}

#[test]
fn a_dropped_server_leaves_neither_process_nor_folder() {
    let server = Postgres::start(PostgresOptions::durable()).unwrap();
    let (pid, folder) = (server.pid(), server.folder().path().to_owned());
    assert_eq!(server.must_psql("postgres", "SHOW fsync").unwrap(), "on\n");
    drop(server);
    assert!(!testbed::is_running(pid));
    assert!(!folder.exists());
}

#[test]
fn a_bad_setting_is_reported_with_the_servers_own_words() {
    let error = Postgres::start(PostgresOptions::default().setting("no_such_setting", "1")).unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}
