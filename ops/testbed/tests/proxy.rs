//! The proxy passes, holds, swallows, delays and cuts; traps act on the connection and the occurrence they name.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use testbed::{Direction, Mode, Program, Proxy, When, shared_postgres};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);
const NOTHING_COMES: Duration = Duration::from_millis(60);

/// Answers every piece with "ok:" and the piece.
async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    stream.write_all(&[b"ok:", &buffer[..count]].concat()).await.unwrap();
                }
            });
        }
    });
    address
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn expect(stream: &mut TcpStream, text: &str) {
    let mut buffer = vec![0; text.len()];
    timeout(SOON, stream.read_exact(&mut buffer)).await.expect("an answer comes").unwrap();
    assert_eq!(String::from_utf8_lossy(&buffer), text);
}

async fn expect_nothing(stream: &mut TcpStream) {
    let mut buffer = [0; 1];
    assert!(timeout(NOTHING_COMES, stream.read(&mut buffer)).await.is_err(), "something came: {buffer:?}");
}

async fn expect_closed(stream: &mut TcpStream) {
    let mut buffer = [0; 1];
    let read = timeout(SOON, stream.read(&mut buffer)).await.expect("the connection is closed");
    assert!(matches!(read, Ok(0) | Err(_)), "something came: {buffer:?}");
}

#[tokio::test]
async fn modes_pass_hold_swallow_and_delay() {
    let proxy = Proxy::start(echo_server().await).unwrap();
    let mut stream = connect(&proxy).await;
    send(&mut stream, "a").await;
    expect(&mut stream, "ok:a").await;

    proxy.set(Mode::Hold).await.unwrap();
    send(&mut stream, "b").await;
    expect_nothing(&mut stream).await;
    proxy.set(Mode::Pass).await.unwrap();
    expect(&mut stream, "ok:b").await;

    proxy.set_one_way(Direction::ToServer, Mode::Swallow).await.unwrap();
    send(&mut stream, "lost").await;
    expect_nothing(&mut stream).await;
    proxy.set(Mode::Delay(Duration::from_millis(80))).await.unwrap();
    send(&mut stream, "c").await;
    expect_nothing(&mut stream).await;
    expect(&mut stream, "ok:c").await;
}

#[tokio::test]
async fn a_cut_closes_and_refuses_until_it_is_mended() {
    let proxy = Proxy::start(echo_server().await).unwrap();
    let mut stream = connect(&proxy).await;
    send(&mut stream, "a").await;
    expect(&mut stream, "ok:a").await;
    proxy.set(Mode::Cut).await.unwrap();
    expect_closed(&mut stream).await;
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    proxy.set(Mode::Pass).await.unwrap();
    let mut stream = connect(&proxy).await;
    send(&mut stream, "b").await;
    expect(&mut stream, "ok:b").await;
    drop(proxy);
    expect_closed(&mut stream).await;
}

#[tokio::test]
async fn a_trap_holds_the_nth_occurrence_and_only_that_connection() {
    let proxy = Proxy::start(echo_server().await).unwrap();
    let (mut first, mut second) = (connect(&proxy).await, connect(&proxy).await);
    let hold = proxy.hold_when(When::to_server("INSERT").nth(2));
    send(&mut first, "INSERT 1").await;
    expect(&mut first, "ok:INSERT 1").await;
    // The needle spans two pieces.
    send(&mut second, "INS").await;
    expect(&mut second, "ok:INS").await;
    send(&mut second, "ERT 2").await;
    hold.held().await.unwrap();
    expect_nothing(&mut second).await;
    send(&mut first, "INSERT 3").await;
    expect(&mut first, "ok:INSERT 3").await;
    hold.release();
    expect(&mut second, "ok:ERT 2").await;
}

#[tokio::test]
async fn held_bytes_arrive_after_the_client_gave_up_and_cut_ones_never() {
    let (listener, mut server);
    listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
    for (released, arrives) in [(true, &b"pay"[..]), (false, &b""[..])] {
        let hold = proxy.hold_when(When::to_server("pay"));
        let mut client = connect(&proxy).await;
        (server, _) = listener.accept().await.unwrap();
        send(&mut client, "pay").await;
        hold.held().await.unwrap();
        drop(client);
        if released {
            hold.release()
        } else {
            hold.cut()
        }
        let mut read = Vec::new();
        timeout(SOON, server.read_to_end(&mut read)).await.unwrap().unwrap();
        assert_eq!(read, arrives);
    }
}

#[tokio::test]
async fn an_answer_is_held_or_cut_after_the_server_has_acted() {
    let proxy = Proxy::start(echo_server().await).unwrap();
    let mut stream = connect(&proxy).await;
    let hold = proxy.hold_when(When::answer_to("POST /refunds"));
    send(&mut stream, "POST /refunds").await;
    hold.held().await.unwrap();
    expect_nothing(&mut stream).await;
    hold.release();
    expect(&mut stream, "ok:POST /refunds").await;

    let cut = proxy.cut_when(When::answer_to("POST /refunds"));
    send(&mut stream, "POST /refunds").await;
    cut.done().await.unwrap();
    expect_closed(&mut stream).await;

    let mut stream = connect(&proxy).await;
    drop(proxy.cut_when(When::to_client("ok:")));
    send(&mut stream, "b").await;
    expect(&mut stream, "ok:b").await;
    let cut = proxy.cut_when(When::to_client("ok:"));
    send(&mut stream, "c").await;
    cut.done().await.unwrap();
    expect_closed(&mut stream).await;
}

#[tokio::test]
async fn a_lost_answer_to_a_commit_leaves_the_row_written() {
    let server = shared_postgres();
    let database = server.create_database().unwrap();
    server.must_psql(&database, "CREATE TABLE t (n int)").unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let cut = proxy.cut_when(When::answer_to("COMMIT"));
    let psql = testbed::postgres_binaries().unwrap().join("psql");
    let url = testbed::Postgres::url_at(proxy.address(), &database);
    let client =
        Program::new(psql).args(["-X", "-d", &url, "-c", "BEGIN", "-c", "INSERT INTO t VALUES (1)", "-c", "COMMIT"]);
    let finished = client.run(SOON).await.unwrap();
    cut.done().await.unwrap();
    assert!(!finished.exit.success(), "{finished:?}");
    assert_eq!(server.must_psql(&database, "SELECT n FROM t").unwrap(), "1\n");
}
