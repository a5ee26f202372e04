//! One connection through the proxy: two pumps, one per direction, which end together.
//!
//! A pump that holds does not read on, so a sender finds the pipe full in the end; the end of a stream is held like its bytes.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::trap::{Closed, Found, Trap};
use super::{Direction, Mode, Shared};

const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes remembered so that a needle may span chunks; longer needles are found only inside one chunk.
const TAIL_BYTES: usize = 1024;

/// What the two pumps of a connection tell each other: traps whose request passed and whose answer is awaited.
type Awaited = Mutex<Vec<Arc<Trap>>>;

pub(super) async fn carry(shared: Arc<Shared>, client: TcpStream) {
    // No server: the client sees its connection closed.
    let Ok(server) = TcpStream::connect(shared.target).await else { return };
    // Without it small answers wait for an acknowledgement; a failure only costs time.
    client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).ok();
    let (client_reader, client_writer) = client.into_split();
    let (server_reader, server_writer) = server.into_split();
    let awaited = Awaited::default();
    let pump = |direction| Pump { shared: &shared, awaited: &awaited, direction, tail: Vec::new() };
    // The first pump that says `Closed` drops the other, and with it all four halves.
    tokio::try_join!(
        pump(Direction::ToServer).run(client_reader, server_writer),
        pump(Direction::ToClient).run(server_reader, client_writer),
    )
    .ok();
}

struct Pump<'a> {
    shared: &'a Shared,
    awaited: &'a Awaited,
    direction: Direction,
    tail: Vec<u8>,
}

impl Pump<'_> {
    async fn run(mut self, mut reader: OwnedReadHalf, mut writer: OwnedWriteHalf) -> Result<(), Closed> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let count = reader.read(&mut buffer).await.map_err(|_| Closed)?;
            let chunk = &buffer[..count];
            self.obey_traps(chunk).await?;
            let passes = self.obey_mode(count == 0).await?;
            if count == 0 {
                return writer.shutdown().await.map_err(|_| Closed);
            }
            if passes {
                writer.write_all(chunk).await.map_err(|_| Closed)?;
            }
        }
    }

    async fn obey_traps(&mut self, chunk: &[u8]) -> Result<(), Closed> {
        if chunk.is_empty() {
            return Ok(());
        }
        if self.direction == Direction::ToClient {
            let awaited = std::mem::take(&mut *self.awaited.lock().unwrap_or_else(PoisonError::into_inner));
            for trap in awaited {
                trap.spring().await?;
            }
        }
        let traps: Vec<Arc<Trap>> = {
            let traps = self.shared.traps.lock().unwrap_or_else(PoisonError::into_inner);
            traps.iter().filter(|trap| trap.when.direction == self.direction).cloned().collect()
        };
        for trap in traps {
            match trap.count(occurrences(&self.tail, chunk, &trap.when.needle)) {
                Found::Nothing => {}
                Found::SpringNow => trap.spring().await?,
                // Told before the request is passed on: the answer cannot overtake it.
                Found::SpringOnAnswer => {
                    self.awaited.lock().unwrap_or_else(PoisonError::into_inner).push(trap);
                }
            }
        }
        self.tail.extend_from_slice(chunk);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        Ok(())
    }

    /// Waits as the mode says; whether the chunk passes. The end of a stream is never swallowed, it waits for another mode.
    async fn obey_mode(&self, end: bool) -> Result<bool, Closed> {
        let mut modes = self.shared.modes.subscribe();
        loop {
            let mode = modes.borrow_and_update().of(self.direction);
            match mode {
                Mode::Pass => return Ok(true),
                Mode::Swallow if !end => return Ok(false),
                Mode::Delay(delay) => {
                    tokio::time::sleep(delay).await;
                    return Ok(true);
                }
                Mode::Cut => return Err(Closed),
                Mode::Hold | Mode::Swallow => modes.changed().await.map_err(|_| Closed)?,
            }
        }
    }
}

/// How often `needle` ends inside `chunk`, which follows `tail`.
fn occurrences(tail: &[u8], chunk: &[u8], needle: &[u8]) -> usize {
    if needle.is_empty() {
        return 1;
    }
    let kept = tail.len().min(needle.len() - 1);
    let text = [&tail[tail.len() - kept..], chunk].concat();
    text.windows(needle.len()).filter(|window| *window == needle).count()
}

#[cfg(test)]
mod tests {
    use super::occurrences;

    #[test]
    fn needles_are_counted_where_they_end() {
        let check = |tail: &str, chunk: &str, needle: &str, expected: usize| {
            let found = occurrences(tail.as_bytes(), chunk.as_bytes(), needle.as_bytes());
            assert_eq!(found, expected, "{tail:?} + {chunk:?} / {needle:?}");
        };
        check("", "COMMIT", "COMMIT", 1);
        check("xCOM", "MIT", "COMMIT", 1);
        check("COMMIT", "x", "COMMIT", 0);
        check("COMMIT", "COMMIT COMMIT", "COMMIT", 2);
        check("", "COM", "COMMIT", 0);
        check("abc", "def", "", 1);
    }
}
