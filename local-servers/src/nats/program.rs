use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Error;

/// 2.12 introduced the atomic batches that the log depends on.
const OLDEST: (u32, u32) = (2, 12);
const FILE: &str = "nats-server";

/// Returns the first `nats-server` that is new enough: the one `WAYPOST_NATS_SERVER` names, the
/// home's own, that of the checkout we run in or were built in, or one on the PATH.
pub(super) async fn find(home: &Path) -> Result<PathBuf, Error> {
    let mut looked = Vec::new();
    for candidate in candidates(home) {
        match version(&candidate).await {
            Some(version) if version >= OLDEST => return Ok(candidate),
            Some((major, minor)) => {
                looked.push(format!("{} is {major}.{minor}", candidate.display()));
            }
            None => looked.push(format!("{} does not run", candidate.display())),
        }
    }
    if looked.is_empty() {
        looked.push("neither in the home's bin folder nor on the PATH".to_owned());
    }
    Err(Error::Missing {
        program: FILE,
        version: "2.12",
        looked: looked.join(", "),
        advice: "run scripts/prepare, which fetches it, or name one with WAYPOST_NATS_SERVER",
    })
}

fn candidates(home: &Path) -> Vec<PathBuf> {
    let named: Option<OsString> = std::env::var_os("WAYPOST_NATS_SERVER");
    if let Some(named) = named.filter(|name| !name.is_empty()) {
        // An operator who names one wants that one and no other.
        return vec![named.into()];
    }
    let mut places = vec![home.join("bin")];
    let here = [std::env::current_dir(), std::env::current_exe()];
    for place in here.iter().flatten() {
        places.extend(place.ancestors().map(|folder| folder.join(".waypost/bin")));
    }
    if let Some(path) = std::env::var_os("PATH") {
        places.extend(std::env::split_paths(&path));
    }
    places.retain(|place| place.is_absolute());
    places
        .into_iter()
        .map(|place| place.join(FILE))
        .filter(|file| file.is_file())
        .collect()
}

async fn version(program: &Path) -> Option<(u32, u32)> {
    let output = tokio::process::Command::new(program)
        .arg("--version")
        .output()
        .await
        .ok()?;
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// From a line like `nats-server: v2.15.1`.
fn parse(line: &str) -> Option<(u32, u32)> {
    let (_, version) = line.trim().rsplit_once('v')?;
    let mut numbers = version.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_what_the_server_prints() {
        assert_eq!(parse("nats-server: v2.15.1\n"), Some((2, 15)));
        assert_eq!(parse("nats-server: v2.12.0-RC.1"), Some((2, 12)));
        assert_eq!(parse("something else"), None);
        assert!((2, 9) < OLDEST && (3, 0) > OLDEST);
    }
}
