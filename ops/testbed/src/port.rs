//! Free loopback ports.
//!
//! Taken below the range from which the kernel draws ports for outgoing connections: a server that is stopped and restarted must find its
//! port still free. The port is closed again before it is returned, so a start can still lose it to somebody else: callers retry.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::Error;

/// Linux draws outgoing ports from 32768 upwards.
const LOWEST: u16 = 15_000;
const COUNT: u16 = 17_000;
/// With half of the range taken, 20 tries fail once in a million; the kernel's choice is asked then.
const TRIES: usize = 20;

/// A port of 127.0.0.1 that was free a moment ago.
pub fn free_port() -> Result<u16, Error> {
    for _ in 0..TRIES {
        let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
        let port = LOWEST + u16::try_from(random % u64::from(COUNT)).unwrap_or_default();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("bind a loopback port"))?;
    Ok(listener.local_addr().map_err(Error::io("read a loopback port"))?.port())
}
