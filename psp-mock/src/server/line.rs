//! The connection itself as something that can fail: closed or reset in place of an answer, or cut off within one.
//!
//! An HTTP library always finishes its answers. So each accepted socket is wrapped, and the handler tells the wrapper what is to
//! become of the bytes that it is about to write.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections the kernel may hold for us: benches open thousands at once.
const BACKLOG: u32 = 4096;

/// Wait after a failed accept, which is usually "too many open files".
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

const WHOLE: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

/// The handler's end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Shears>);

#[derive(Debug)]
struct Shears {
    /// Bytes of the next body that go out before the connection ends; `WHOLE` when it does not end, `NOTHING` not even the head.
    body_left: AtomicU32,
    reset: AtomicBool,
}

impl Line {
    /// Nothing more is written; the connection ends at the next write.
    pub(crate) fn close(&self) {
        self.0.body_left.store(NOTHING, Ordering::Relaxed);
    }

    /// As `close`, and the peer sees a reset.
    pub(crate) fn reset(&self) {
        self.0.reset.store(true, Ordering::Relaxed);
        self.close();
    }

    /// The next answer stops after this many bytes of its body.
    pub(crate) fn truncate(&self, body_bytes: u32) {
        self.0.body_left.store(body_bytes.min(NOTHING - 1), Ordering::Relaxed);
    }
}

pub(crate) struct CutListener(TcpListener);

impl CutListener {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG).map(Self)
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Listener for CutListener {
    type Io = CutStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (CutStream, SocketAddr) {
        loop {
            match self.0.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "connection keeps Nagle's delay");
                    }
                    let shears = Shears { body_left: AtomicU32::new(WHOLE), reset: AtomicBool::new(false) };
                    return (CutStream { stream, line: Line(Arc::new(shears)) }, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address()
    }
}

impl Connected<IncomingStream<'_, CutListener>> for Line {
    fn connect_info(stream: IncomingStream<'_, CutListener>) -> Self {
        stream.io().line.clone()
    }
}

pub(crate) struct CutStream {
    stream: TcpStream,
    line: Line,
}

impl AsyncRead for CutStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let body_left = self.line.0.body_left.load(Ordering::Relaxed);
        if body_left == WHOLE {
            return Pin::new(&mut self.stream).poll_write(cx, buf);
        }
        if body_left == NOTHING {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        // The head and the beginning of the body come in one buffer: answers are small and built before they are written.
        let head = buf.windows(4).position(|w| w == b"\r\n\r\n").map_or(0, |at| at + 4);
        let allowed = head.saturating_add(body_left as usize).min(buf.len());
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &buf[..allowed]))?;
        if written == allowed {
            self.line.close();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for CutStream {
    fn drop(&mut self) {
        if self.line.0.reset.load(Ordering::Relaxed)
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(%error, "connection closes without a reset");
        }
    }
}
