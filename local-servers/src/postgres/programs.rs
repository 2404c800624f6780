use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::Error;

const OLDEST: u32 = 15;
/// Debian keeps the servers of all versions here and off the PATH.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The server programs of one version.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) postgres: PathBuf,
    pub(super) initdb: PathBuf,
    /// Belongs to the client programs, so it may be missing.
    pub(super) basebackup: PathBuf,
}

/// Returns the newest programs or, if data exists, those of the version that created it.
pub(super) async fn find(data: &Path) -> Result<Programs, Error> {
    let made_by: Option<u32> = fs::read_to_string(data.join("PG_VERSION"))
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let mut found = Vec::new();
    for folder in folders() {
        if let Some(major) = major(&folder.join("postgres")).await {
            found.push((major, folder));
        }
    }
    if let Some((_, folder)) = best(&found, made_by) {
        let postgres = folder.join("postgres");
        // A link on the PATH need not have the others beside it.
        let itself = fs::canonicalize(&postgres).unwrap_or_else(|_| postgres.clone());
        return Ok(Programs {
            basebackup: itself.with_file_name("pg_basebackup"),
            initdb: folder.join("initdb"),
            postgres,
        });
    }
    Err(match made_by {
        Some(major) if !found.is_empty() => Error::Unusable {
            folder: data.to_owned(),
            reason: format!(
                "it was created by Postgres {major}, which is no longer installed; install \
                 postgresql-{major}, or delete the folder (its content is rebuilt from the log)"
            ),
        },
        _ => Error::Missing {
            program: "Postgres",
            version: "15",
            looked: format!("on the PATH and under {DEBIAN}"),
            advice: "run scripts/prepare, or apt-get install postgresql",
        },
    })
}

/// The newest; among equals, the first found.
fn best(found: &[(u32, PathBuf)], made_by: Option<u32>) -> Option<&(u32, PathBuf)> {
    found
        .iter()
        .rev()
        .filter(|(major, _)| made_by.map_or(*major >= OLDEST, |wanted| wanted == *major))
        .max_by_key(|(major, _)| *major)
}

/// Folders that hold both programs, those on the PATH first.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(debian)
        .filter(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .collect()
}

async fn major(postgres: &Path) -> Option<u32> {
    let output = tokio::process::Command::new(postgres)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .await
        .ok()?;
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// From a line like `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn parse(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("(PostgreSQL) ")?;
    let digits = rest.split(|symbol: char| !symbol.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_major_version_is_read_from_what_postgres_prints() {
        let line = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse(line), Some(15));
        assert_eq!(parse("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(parse("postgres"), None);
    }

    #[test]
    fn data_decides_the_version_and_otherwise_the_newest_is_taken() {
        let found = [
            (15, "a".into()),
            (17, "b".into()),
            (17, "c".into()),
            (14, "d".into()),
        ];
        assert_eq!(best(&found, None), Some(&(17, PathBuf::from("b"))));
        assert_eq!(best(&found, Some(14)), Some(&(14, PathBuf::from("d"))));
        assert_eq!(best(&found, Some(16)), None);
        assert_eq!(best(&found[3..], None), None);
    }
}
