//! A private PostgreSQL: 127.0.0.1 only, trust authentication, superuser `postgres`, data in a temporary folder.
//!
//! States: running, or ended after [`Postgres::stop`] or [`Postgres::kill`]; [`Postgres::restart`] leads back to running on the same port
//! and data. With the test process go the server (immediate shutdown, then SIGKILL) and its folder.
//!
//! `fsync: false` is for speed and still survives [`Postgres::kill`]: the kernel keeps what was written. It does not survive the machine.
//! `synchronous_commit` is left on in both cases, since a killed server would lose acknowledged commits without it.
//!
//! Left out: replication, TLS, passwords. Blocking on purpose, so that one server can be shared by tests with runtimes of their own.

mod options;
mod ready;
mod sql;

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use rustix::process::Signal;

use crate::binaries::{ServerUser, postgres_binaries};
use crate::error::Error;
use crate::folder::TempFolder;
use crate::port::free_port;
use crate::supervisor::{Order, Supervised};

pub use options::PostgresOptions;
pub use sql::SqlOutput;

/// A busy machine with two cores has needed several seconds; a start that takes this long is broken.
const START_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(30);
/// A port can be lost between choosing it and listening; five losses in a row mean something else is wrong.
const PORT_TRIES: usize = 5;

/// One private server.
#[derive(Debug)]
pub struct Postgres {
    // Dropped in this order: the server ends before its folder is removed.
    server: Supervised,
    place: Place,
    options: PostgresOptions,
    port: u16,
    databases: AtomicUsize,
}

/// Where the server's files and programs are.
#[derive(Debug)]
struct Place {
    folder: TempFolder,
    binaries: PathBuf,
    user: ServerUser,
}

impl Postgres {
    /// Makes a fresh cluster and starts it; ready for connections on return.
    pub fn start(options: PostgresOptions) -> Result<Postgres, Error> {
        let place =
            Place { folder: TempFolder::new("postgres")?, binaries: postgres_binaries()?, user: ServerUser::find()? };
        ready::init_cluster(&place)?;
        let mut tries = 1;
        loop {
            let port = free_port()?;
            match launch(&place, &options, port) {
                Ok(server) => return Ok(Postgres { server, place, options, port, databases: AtomicUsize::new(0) }),
                Err(Error::Ended { .. }) if tries < PORT_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Process id of the postmaster.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The folder with data and `server.log`.
    pub fn folder(&self) -> &TempFolder {
        &self.place.folder
    }

    /// Address of a database for a client.
    pub fn url(&self, database: &str) -> String {
        Postgres::url_at(self.address(), database)
    }

    /// Address of a database for a client that goes through a proxy at `address`.
    pub fn url_at(address: SocketAddr, database: &str) -> String {
        format!("postgres://postgres@{address}/{database}")
    }

    /// Fast shutdown: sessions are ended, data is written out.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.server.signal(Signal::INT)?;
        self.server.wait_exit(STOP_DEADLINE).map(drop)
    }

    /// SIGKILL of the postmaster, as when its machine loses the process; recovery runs at the next start.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.server.signal(Signal::KILL)?;
        self.server.wait_exit(STOP_DEADLINE).map(drop)
    }

    /// Ends the server if it runs (fast shutdown) and starts it again on the same port and data.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop()?;
        // After a kill, backends hold the shared memory for a moment and a start is refused: tried again until the deadline.
        let mut refused = None;
        let started = crate::clock::wait("PostgreSQL to start again", START_DEADLINE, || {
            match launch(&self.place, &self.options, self.port) {
                Ok(server) => Some(Ok(server)),
                Err(error @ Error::Ended { .. }) => {
                    refused = Some(error);
                    None
                }
                Err(error) => Some(Err(error)),
            }
        });
        self.server = match (started, refused) {
            (Ok(server), _) => server?,
            (Err(_), Some(refused)) => return Err(refused),
            (Err(timed_out), None) => return Err(timed_out),
        };
        Ok(())
    }
}

/// Starts the postmaster and waits until it accepts connections. `Error::Ended` is what a lost port looks like.
fn launch(place: &Place, options: &PostgresOptions, port: u16) -> Result<Supervised, Error> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(place.folder.join("server.log"))
        .map_err(Error::io("open the log of PostgreSQL"))?;
    let mut words = place.user.command(&place.binaries.join("postgres"));
    words.extend(options.arguments(&place.folder.join("data"), port));
    let mut server = Supervised::start(Order {
        name: "PostgreSQL",
        words: &words,
        environment: &[],
        folder: Some(place.folder.path()),
        ask_with: "QUIT",
        stderr: Stdio::from(log),
    })?;
    ready::wait_ready(place, &mut server, port)?;
    Ok(server)
}

/// The one server of this test process, without fsync, started by the first caller; use a database of your own on it.
///
/// # Panics
/// When no server can be started: every test that asks would fail anyway, with this text.
pub fn shared_postgres() -> &'static Postgres {
    static SHARED: OnceLock<Postgres> = OnceLock::new();
    SHARED.get_or_init(|| match Postgres::start(PostgresOptions::default()) {
        Ok(server) => server,
        Err(error) => panic!("no private PostgreSQL for the tests: {error}"),
    })
}
