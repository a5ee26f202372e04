//! Where the machine keeps PostgreSQL's programs, and as whom they run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// Debian keeps one folder per major version here, none of them on PATH.
const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";
const INSTALL: &str = "apt-get install postgresql";

/// The folder with `initdb`, `postgres` and `psql`: `pg_config`'s answer, else Debian's newest version, else PATH.
pub fn postgres_binaries() -> Result<PathBuf, Error> {
    let complete = |folder: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).exists());
    let found = asked_folder().into_iter().chain(debian_folders()).chain(path_folders()).find(complete);
    found.ok_or(Error::Missing { what: "a PostgreSQL server", install: INSTALL })
}

fn asked_folder() -> Option<PathBuf> {
    let answer = Command::new("pg_config").arg("--bindir").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    (!text.trim().is_empty()).then(|| PathBuf::from(text.trim()))
}

/// Newest first.
fn debian_folders() -> Vec<PathBuf> {
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let entries = std::fs::read_dir(DEBIAN_VERSIONS).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((version(&entry.path())?, entry.path().join("bin")))).collect();
    found.sort_by(|left, right| right.cmp(left));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn path_folders() -> Vec<PathBuf> {
    std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect()
}

/// As whom the server runs: PostgreSQL refuses root.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerUser {
    Ourselves,
    Postgres { uid: u32, gid: u32 },
}

impl ServerUser {
    pub(crate) fn find() -> Result<ServerUser, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(ServerUser::Ourselves);
        }
        match (user_number("-u"), user_number("-g")) {
            (Some(uid), Some(gid)) => Ok(ServerUser::Postgres { uid, gid }),
            _ => Err(Error::Missing { what: "the user postgres", install: INSTALL }),
        }
    }

    /// The words that start `program` as this user.
    pub(crate) fn command(&self, program: &Path) -> Vec<String> {
        let mut words = match self {
            ServerUser::Ourselves => Vec::new(),
            ServerUser::Postgres { uid, gid } => {
                vec![
                    "setpriv".to_owned(),
                    format!("--reuid={uid}"),
                    format!("--regid={gid}"),
                    "--init-groups".to_owned(),
                ]
            }
        };
        words.push(program.to_string_lossy().into_owned());
        words
    }

    /// Gives `path` to this user.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        match self {
            ServerUser::Ourselves => Ok(()),
            ServerUser::Postgres { uid, gid } => std::os::unix::fs::chown(path, Some(*uid), Some(*gid))
                .map_err(Error::io(format!("give {path:?} to the user postgres"))),
        }
    }
}

fn user_number(which: &str) -> Option<u32> {
    let answer = Command::new("id").args([which, "postgres"]).output().ok()?;
    String::from_utf8(answer.stdout).ok()?.trim().parse().ok()
}
