use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use super::account::Account;
use super::{DATA, NAME, data};
use crate::Error;
use crate::home::{self, Lock};

/// The folder for data that the postgres account could not reach in a home.
const OUTSIDE: &str = "/var/lib/waypost";
const FOLDER: &str = "postgres";

/// Returns the home's folder for Postgres: its real path, outside the home if needed.
pub(super) async fn folder(home: &Path, account: &Account) -> Result<PathBuf, Error> {
    let inside = home.join(FOLDER);
    if fs::symlink_metadata(&inside).is_err() {
        create(home, &inside, account).await?;
    }
    // A link may have lost its target: the data was removed and is created again.
    if let Ok(target) = fs::read_link(&inside) {
        fs::create_dir_all(&target).map_err(Error::file("create", &target))?;
    }
    let folder = inside
        .canonicalize()
        .map_err(Error::file("find", &inside))?;
    if account.can_enter(&folder) {
        return Ok(folder);
    }
    Err(Error::Unusable {
        folder,
        reason: "the account that runs Postgres may not enter it; let it through \
                 (chmod o+x on the folders above), or set WAYPOST_HOME to another folder"
            .to_owned(),
    })
}

async fn create(home: &Path, inside: &Path, account: &Account) -> Result<(), Error> {
    if account.can_enter(home) {
        return fs::create_dir(inside).map_err(Error::file("create", inside));
    }
    let outside = outside(home);
    if outside.exists() {
        set_aside(&outside).await?;
    }
    fs::create_dir_all(&outside).map_err(Error::file("create", &outside))?;
    symlink(&outside, inside).map_err(Error::file("link", inside))
}

/// Data of a home that has since been removed must not come back to life beside a new, empty log;
/// nor is it ours to delete. The last such data is kept.
async fn set_aside(outside: &Path) -> Result<(), Error> {
    let _lock = Lock::take(NAME, outside)?;
    data::end_leftovers(&outside.join(DATA)).await?;
    let mut aside = OsString::from(outside);
    aside.push(".removed-home");
    let aside = PathBuf::from(aside);
    match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::file("remove", aside)(error));
        }
        _ => {}
    }
    tracing::info!(from = %outside.display(), to = %aside.display(),
        "Setting aside the Postgres data of an earlier home in this place.");
    fs::rename(outside, &aside).map_err(Error::file("set aside", outside))
}

/// Removes the data that a home stores outside of itself.
pub(crate) fn remove_outside(home: &Path) {
    let Ok(home) = home.canonicalize() else {
        return;
    };
    let outside = outside(&home);
    // Only what this home links to: a folder of the same name may be an older home's.
    if fs::read_link(home.join(FOLDER)).is_ok_and(|target| target == outside)
        && let Err(error) = fs::remove_dir_all(&outside)
    {
        tracing::warn!(path = %outside.display(), %error, "A temporary home's data stays behind.");
    }
}

fn outside(home: &Path) -> PathBuf {
    let hash = digest(&SHA256, home.as_os_str().as_bytes());
    Path::new(OUTSIDE).join(home::hex(&hash.as_ref()[..8]))
}
