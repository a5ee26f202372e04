//! Temporary folders that go with the test.
//!
//! All folders of one process lie in one base folder. A guard process holds the other end of a pipe of ours: when the test process is
//! gone, for whatever reason, it removes the base. A folder dropped in time is removed at once.
//!
//! Other users may pass through them (mode 755): PostgreSQL runs as a user of its own when the test runs as root.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::error::Error;

/// Waits for the end of its input, then removes the folder; again for a while, since servers that end may still write.
const GUARD: &str = r#"
while read -r line; do :; done
tries=0
while ! rm -rf "$1" && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.1; done
"#;

/// A folder of its own, removed with everything in it on drop, or when the test process is gone.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
}

impl TempFolder {
    /// Makes a folder whose name starts with `label`.
    pub fn new(label: &str) -> Result<TempFolder, Error> {
        let path = base()?.join(format!("{label}-{}", uuid::Uuid::new_v4().simple()));
        make(&path)?;
        Ok(TempFolder { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the guard.
        fs::remove_dir_all(&self.path).ok();
    }
}

/// The base folder of this process and the guard that removes it; the guard's pipe closes with the process.
struct Base {
    path: PathBuf,
    _guard: Child,
}

fn base() -> Result<&'static Path, Error> {
    static BASE: OnceLock<Result<Base, String>> = OnceLock::new();
    let base = BASE.get_or_init(|| start_base().map_err(|error| format!("{error:?}")));
    match base {
        Ok(base) => Ok(&base.path),
        Err(error) => Err(Error::io("make the base of temporary folders")(std::io::Error::other(error.as_str()))),
    }
}

fn start_base() -> Result<Base, Error> {
    let name = format!("testbed-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
    let path = parent().join(name);
    let guard = Command::new("sh")
        .args(["-c", GUARD, "testbed-folder-guard"])
        .arg(&path)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(Error::io("start the guard of temporary folders"))?;
    make(&path)?;
    Ok(Base { path, _guard: guard })
}

fn make(path: &Path) -> Result<(), Error> {
    fs::create_dir(path).map_err(Error::io(format!("make the folder {path:?}")))?;
    fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(Error::io(format!("open the folder {path:?}")))
}

/// The machine's folder for temporary files, unless other users cannot pass through it.
fn parent() -> PathBuf {
    let chosen = std::env::temp_dir();
    let open = |folder: &Path| fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 != 0);
    let passable = chosen.is_absolute() && chosen.ancestors().all(open);
    if passable { chosen } else { PathBuf::from("/tmp") }
}
