use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

const NAME: &str = "postgres";

/// The account that runs Postgres: our own or, as it refuses to run as root, the postgres account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    ids: Option<(u32, u32)>,
}

impl Account {
    pub(super) fn find() -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { ids: None });
        }
        let accounts =
            fs::read_to_string("/etc/passwd").map_err(Error::file("read", "/etc/passwd"))?;
        let ids = accounts
            .lines()
            .find_map(ids_in)
            .ok_or_else(|| Error::Unusable {
                folder: "/etc/passwd".into(),
                reason: "Postgres does not run as root and there is no account `postgres`; \
                     install Postgres by apt-get install postgresql, or run this as another user"
                    .to_owned(),
            })?;
        Ok(Self { ids: Some(ids) })
    }

    /// A command that runs as this account, from a folder that everyone may enter.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/");
        if let Some((uid, gid)) = self.ids {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Whether this account can enter a folder. Tried out, as modes do not show everything.
    pub(super) fn can_enter(&self, folder: &Path) -> bool {
        self.command("/bin/sh")
            .args(["-c", "cd -- \"$1\"", "sh"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Makes the account the owner of a file or folder.
    pub(super) fn give(&self, path: &Path) -> Result<(), Error> {
        match self.ids {
            Some((uid, gid)) => {
                chown(path, Some(uid), Some(gid)).map_err(Error::file("give away", path))
            }
            None => Ok(()),
        }
    }

    /// Refuses a folder that another account created.
    pub(super) fn must_own(&self, folder: &Path) -> Result<(), Error> {
        let owner = fs::metadata(folder)
            .map_err(Error::file("look at", folder))?
            .uid();
        let expected = self
            .ids
            .map_or_else(|| rustix::process::geteuid().as_raw(), |(uid, _)| uid);
        if owner == expected {
            return Ok(());
        }
        Err(Error::Unusable {
            folder: folder.to_owned(),
            reason: format!(
                "it belongs to user {owner} and the server would run as user {expected}; \
                 run this as before, or set WAYPOST_HOME to another folder"
            ),
        })
    }
}

fn ids_in(line: &str) -> Option<(u32, u32)> {
    let mut fields = line.split(':');
    (fields.next() == Some(NAME)).then_some(())?;
    Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_read_by_its_exact_name() {
        let line = "postgres:x:104:111:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash";
        assert_eq!(ids_in(line), Some((104, 111)));
        assert_eq!(ids_in("postgres2:x:1:2::/:/bin/sh"), None);
    }
}
