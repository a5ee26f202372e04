//! Tables that grow without a pause.
//!
//! A vector or a hash map that doubles copies all it holds, and all calls wait for the lock meanwhile: half a second at half a million
//! refunds. So rows live in chunks that never move, and an index is split into shards that each grow on their own.

use super::Id;
use crate::ids;
use std::collections::HashMap;
use std::ops::{Index, IndexMut};

const CHUNK: usize = 4096;
const SHARDS: usize = 256;

/// Rows by position, only ever appended.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    chunks: Vec<Vec<T>>,
    length: usize,
}

impl<T> Rows<T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Appends a row; its position is the answer.
    pub(crate) fn push(&mut self, row: T) -> u32 {
        if self.length.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(row);
        }
        self.length += 1;
        (self.length - 1) as u32
    }

    /// The rows from `first` on, up to but not with `end`.
    pub(crate) fn range(&self, first: usize, end: usize) -> impl Iterator<Item = &T> {
        (first..end.min(self.length)).map(|at| &self[at as u32])
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), length: 0 }
    }
}

impl<T> Index<u32> for Rows<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Rows<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

/// Values by name, in shards.
#[derive(Debug)]
pub(crate) struct ByName<T> {
    shards: Vec<HashMap<Id, T>>,
}

impl<T> ByName<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.shards[shard(name)].get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.shards[shard(name)].get_mut(name)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn insert(&mut self, name: Id, value: T) {
        self.shards[shard(&name)].insert(name, value);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.shards[shard(name)].remove(name);
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| HashMap::new()).collect() }
    }
}

fn shard(name: &str) -> usize {
    ids::hash(0, name) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_position_across_chunks() {
        let mut rows = Rows::default();
        for number in 0..CHUNK * 2 + 1 {
            assert_eq!(rows.push(number), number as u32);
        }
        assert_eq!(
            (rows.len(), rows[0], rows[CHUNK as u32], rows[2 * CHUNK as u32]),
            (2 * CHUNK + 1, 0, CHUNK, 2 * CHUNK)
        );
        assert_eq!(rows.range(CHUNK - 1, CHUNK + 1).copied().collect::<Vec<_>>(), [CHUNK - 1, CHUNK]);
        assert_eq!(rows.range(2 * CHUNK, 9 * CHUNK).count(), 1);
    }
}
