//! A TCP proxy that can stop the world at a named request.
//!
//! It sits between a client and a server on loopback and treats bytes by [`Mode`]: passed, held, swallowed, delayed, or cut (connections
//! closed, new ones refused). A trap, [`Proxy::hold_when`] or [`Proxy::cut_when`], acts on one connection at the nth occurrence of some
//! bytes: a named SQL statement, an HTTP request line, or the answer to one. It reads plain PostgreSQL and HTTP/1 equally, as bytes.
//!
//! Held bytes are late, not lost: they reach the server after the release even if the client gave up meanwhile, as on a real network.
//!
//! A client that caches prepared statements sends the text of a statement once per connection: look for a bound text value instead, or
//! switch the cache off.
//!
//! A dropped proxy closes everything at once; with the test process it is gone. Left out: TLS, packet loss below TCP.

mod connection;
mod trap;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::clock::POLL_INTERVAL;
use crate::error::Error;
use crate::runtime::{self, runtime};
use trap::{Action, Trap};

pub use trap::{Cut, Hold, When};

/// Opening and closing a loopback port takes milliseconds.
const LISTEN_DEADLINE: Duration = Duration::from_secs(20);

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// What happens to bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Pass,
    /// Kept back until the mode changes; then all arrives.
    Hold,
    /// Read and thrown away; the connection stays open.
    Swallow,
    /// Each piece arrives this much later.
    Delay(Duration),
    /// All connections are closed, new ones refused by the port itself.
    Cut,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modes {
    to_server: Mode,
    to_client: Mode,
}

impl Modes {
    fn of(self, direction: Direction) -> Mode {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    fn cut(self) -> bool {
        self.to_server == Mode::Cut || self.to_client == Mode::Cut
    }
}

/// Connections the system queues for us.
const BACKLOG: u32 = 1_024;

/// What the accept loop, the connections and the handle share.
#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    target: SocketAddr,
    modes: watch::Sender<Modes>,
    listening: watch::Sender<bool>,
    traps: Mutex<Vec<Arc<Trap>>>,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    task: AbortHandle,
    /// Bound and never listening: keeps the port ours while it refuses.
    _reservation: TcpSocket,
}

impl Proxy {
    /// Listens on a free port and passes everything to `target`.
    pub fn start(target: SocketAddr) -> Result<Proxy, Error> {
        let failed = || Error::io("listen for a proxy");
        let _entered = runtime().enter();
        let reservation = reserve().map_err(failed())?;
        let address = reservation.local_addr().map_err(failed())?;
        let listener = bind(address).and_then(|socket| socket.listen(BACKLOG)).map_err(failed())?;
        let shared = Arc::new(Shared {
            address,
            target,
            modes: watch::Sender::new(Modes::default()),
            listening: watch::Sender::new(true),
            traps: Mutex::default(),
        });
        let task = runtime().spawn(accept_loop(Arc::clone(&shared), listener)).abort_handle();
        Ok(Proxy { shared, task, _reservation: reservation })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Treats both directions alike. On return of `Cut` the port refuses, on return of another mode it accepts.
    pub async fn set(&self, mode: Mode) -> Result<(), Error> {
        self.change(|modes| *modes = Modes { to_server: mode, to_client: mode }).await
    }

    /// Treats one direction; `Cut` closes both.
    pub async fn set_one_way(&self, direction: Direction, mode: Mode) -> Result<(), Error> {
        self.change(|modes| match direction {
            Direction::ToServer => modes.to_server = mode,
            Direction::ToClient => modes.to_client = mode,
        })
        .await
    }

    async fn change(&self, change: impl FnOnce(&mut Modes)) -> Result<(), Error> {
        self.shared.modes.send_modify(change);
        let cut = self.shared.modes.borrow().cut();
        let mut listening = self.shared.listening.subscribe();
        let agreed = listening.wait_for(|listening| *listening != cut);
        match runtime::timeout(LISTEN_DEADLINE, agreed).await {
            Some(Ok(_)) => Ok(()),
            _ => Err(Error::TimedOut {
                what: format!("the proxy at {} to follow", self.shared.address),
                after: LISTEN_DEADLINE,
                context: String::new(),
            }),
        }
    }

    /// Sets a trap: the connection that brings what `when` describes stands still in that direction from there on, until released.
    pub fn hold_when(&self, when: When) -> Hold {
        Hold::new(self.set_trap(when, Action::Hold))
    }

    /// Sets a trap: the connection that brings what `when` describes is closed instead of passing it on.
    pub fn cut_when(&self, when: When) -> Cut {
        Cut::new(self.set_trap(when, Action::Cut))
    }

    fn set_trap(&self, when: When, action: Action) -> Arc<Trap> {
        let trap = Arc::new(Trap::new(when, action));
        let mut traps = self.shared.traps.lock().unwrap_or_else(PoisonError::into_inner);
        traps.retain(|trap| trap.is_armed());
        traps.push(Arc::clone(&trap));
        trap
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The accept loop owns the connections: they end with it.
        self.task.abort();
    }
}

async fn accept_loop(shared: Arc<Shared>, mut listener: TcpListener) {
    let mut modes = shared.modes.subscribe();
    let mut connections = JoinSet::new();
    loop {
        if modes.borrow_and_update().cut() {
            // A process that is being started elsewhere may hold a copy of the socket until it runs its program: closing ours alone
            // would leave the port listening.
            rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).ok();
            drop(listener);
            connections.shutdown().await;
            shared.listening.send_replace(false);
            // The sender lives in `shared`, which this task holds.
            modes.wait_for(|modes| !modes.cut()).await.ok();
            listener = listen_again(shared.address).await;
            shared.listening.send_replace(true);
        }
        tokio::select! {
            biased;
            _ = modes.changed() => {}
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                connections.spawn(connection::carry(Arc::clone(&shared), client));
            }
        }
    }
}

/// A port of our own: chosen while it is shared with nobody, and only then opened for sharing, since the system may give a socket
/// that shares a port that is shared already.
fn reserve() -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    socket.set_reuseport(true)?;
    Ok(socket)
}

/// A socket on the reserved port.
fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Tried until it succeeds, bounded by the caller's deadline.
async fn listen_again(address: SocketAddr) -> TcpListener {
    loop {
        match bind(address).and_then(|socket| socket.listen(BACKLOG)) {
            Ok(listener) => return listener,
            Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}
