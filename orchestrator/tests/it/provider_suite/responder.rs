//! A server that answers each request with prepared bytes, for answers that no real provider would give on demand.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What is done with a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// These bytes; the connection stays open.
    Bytes(Vec<u8>),
    /// These bytes, then the connection is closed.
    BytesThenClose(Vec<u8>),
    /// These bytes, then nothing more and no close.
    BytesThenSilence(Vec<u8>),
    Reset,
}

pub(super) struct Responder {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    /// Ends the server when dropped.
    _server: JoinSet<()>,
}

impl Responder {
    /// Answers requests, in their order of arrival, with these replies.
    pub(super) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut server = JoinSet::new();
        server.spawn(serve(listener, Arc::new(Mutex::new(replies.into_iter())), requests.clone()));
        Self { address, requests, _server: server }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, head and body.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// An answer with its length.
pub(super) fn response(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

type Replies = Arc<Mutex<std::vec::IntoIter<Reply>>>;

async fn serve(listener: TcpListener, replies: Replies, requests: Arc<Mutex<Vec<String>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, replies.clone(), requests.clone()));
    }
}

async fn answer(mut stream: TcpStream, replies: Replies, requests: Arc<Mutex<Vec<String>>>) {
    while let Some(request) = read_request(&mut stream).await {
        requests.lock().unwrap().push(request);
        let Some(reply) = replies.lock().unwrap().next() else { return };
        match reply {
            Reply::Bytes(bytes) => stream.write_all(&bytes).await.unwrap(),
            Reply::BytesThenClose(bytes) => return stream.write_all(&bytes).await.unwrap(),
            Reply::BytesThenSilence(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                std::future::pending::<()>().await;
            }
            Reply::Reset => return stream.set_zero_linger().unwrap(),
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
