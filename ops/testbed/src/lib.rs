//! Private servers and processes for tests and drills.
//!
//! What it is for: a test asks for a PostgreSQL, a process of ours or a wire proxy and gets one of its own, on a free loopback port,
//! with its files in a temporary folder.
//!
//! What holds when the test process dies: every server and process runs under a small `sh` supervisor (`supervisor.sh`) whose standard
//! input is a pipe held by the test process. The kernel closes that pipe whatever ended the test process (return, panic, SIGKILL), the
//! supervisor then ends its one child by process id, and a guard of the same kind removes the temporary folders. Nothing is found by
//! name, nothing runs on a fixed port.
//!
//! Time: readiness and exits are awaited, with a deadline, by [`wait`] or the async methods. Proxies and readers of output live on a
//! runtime of their own (`runtime`), so a test may block its thread or pause tokio's clock and they go on.
//!
//! Left out: the supervisor ends its child, not grandchildren that outlive it; TLS is passed through by the proxy but not read.

mod binaries;
mod clock;
mod error;
mod folder;
mod port;
mod postgres;
mod process;
mod proxy;
mod runtime;
mod supervisor;

pub use binaries::postgres_binaries;
pub use clock::wait;
pub use error::Error;
pub use folder::TempFolder;
pub use port::free_port;
pub use postgres::{Postgres, PostgresOptions, SqlOutput, shared_postgres};
pub use process::{Finished, Process, Program};
pub use proxy::{Cut, Direction, Hold, Mode, Proxy, When};
pub use supervisor::{Exit, is_running};
