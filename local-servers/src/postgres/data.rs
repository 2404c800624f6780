//! Prepares the data folder before the server runs on it.

use std::fs;
use std::path::Path;

use rustix::process::Pid;

use super::account::Account;
use super::programs::Programs;
use super::setup::{self, Passwords};
use super::{NAME, OWNER, QUIT, READER, STOP_LIMIT};
use crate::{Error, home, processes};

/// Makes sure that the data exists and knows the home's passwords.
pub(super) async fn prepare(
    home: &Path,
    data: &Path,
    programs: &Programs,
    account: &Account,
) -> Result<Passwords, Error> {
    let owner = home::secret(home, &secret_name(OWNER))?;
    let reader = home::secret(home, &secret_name(READER))?;
    let fresh = owner.fresh || reader.fresh;
    let passwords = Passwords {
        owner: owner.value,
        reader: reader.value,
    };
    if !data.exists() {
        setup::create(data, programs, account, &passwords).await?;
        return Ok(passwords);
    }
    account.must_own(data)?;
    if fresh {
        discard_foreign_pid(data)?;
        setup::set_passwords(data, programs, account, &passwords).await?;
    }
    Ok(passwords)
}

/// The file below `secrets/` that holds a role's password.
pub(super) fn secret_name(role: &str) -> String {
    format!("{role}-database-password")
}

/// Servers that run on this data. While we hold the lock, those were left behind by a killed run.
pub(super) fn servers_of(data: &Path) -> Vec<Pid> {
    processes::started_with("-D", data)
}

/// Stops a left-over server, or a left-over creation of the data.
pub(super) async fn end_leftovers(data: &Path) -> Result<(), Error> {
    for data in [data, &data.with_extension("draft")] {
        processes::end_leftovers(NAME, || servers_of(data), QUIT, STOP_LIMIT).await?;
    }
    Ok(())
}

/// After a crash the number in `postmaster.pid` may belong to another process, which Postgres would
/// take for a running server. We hold the lock and know that none runs.
pub(super) fn discard_foreign_pid(data: &Path) -> Result<(), Error> {
    let path = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(());
    };
    let alive = text
        .lines()
        .next()
        .and_then(|line| line.trim().parse::<u32>().ok())
        .is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists());
    if alive && servers_of(data).is_empty() {
        fs::remove_file(&path).map_err(Error::file("remove", &path))?;
    }
    Ok(())
}
