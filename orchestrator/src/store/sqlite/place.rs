//! Where the database file lies, and who deletes it.

use crate::store::StoreError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file of the caller's, or one that goes with the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlitePlace {
    /// Created if it is not there; its folder must be. On a local disk: network file systems lie about locks.
    File(PathBuf),
    /// In a new folder under the system's temporary folder, deleted with the last handle of the store.
    Temporary,
}

/// A folder that is deleted when it is dropped.
#[derive(Debug)]
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a temporary database could not be deleted");
        }
    }
}

/// The file in use.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    _temporary: Option<TemporaryFolder>,
}

/// No name is used twice by a process: a store that was dropped closes its connections in the background, and a closing connection
/// deletes the log beside its file by name.
static FOLDERS_CREATED: AtomicU32 = AtomicU32::new(0);

/// Folders left behind by processes that had our id before; more than this means the folder can not be used.
const NAME_TRIES_MAX: u32 = 10_000;

impl Place {
    pub(super) fn open(place: SqlitePlace) -> Result<Self, StoreError> {
        match place {
            SqlitePlace::File(file) => Ok(Self { file, _temporary: None }),
            SqlitePlace::Temporary => {
                let folder = create_temporary_folder()
                    .map_err(|error| StoreError::Unavailable(format!("no temporary folder: {error}")))?;
                Ok(Self { file: folder.0.join("refunds.sqlite"), _temporary: Some(folder) })
            }
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }
}

/// The next name nobody has: creating a folder tells whether it was there.
fn create_temporary_folder() -> std::io::Result<TemporaryFolder> {
    let parent = std::env::temp_dir();
    let process = std::process::id();
    let mut tries = 1;
    loop {
        let number = FOLDERS_CREATED.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("orchestrator-{process}-{number}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(TemporaryFolder(folder)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < NAME_TRIES_MAX => tries += 1,
            Err(error) => return Err(error),
        }
    }
}
