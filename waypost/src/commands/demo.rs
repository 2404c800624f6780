//! `waypost demo`: the addresses, key and sign-in of the demo data.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use service::settings::CommonSettings;

use super::print;
use crate::Failure;

/// Where the demo's webhook and workflow calls go, and where `waypost listen` listens.
pub(crate) const RECEIVER: &str = "127.0.0.1:8099";

/// The demo, as created by its first start. It holds secrets, so only the owner can read its file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Demo {
    pub(crate) url: String,
    pub(crate) org_id: String,
    pub(crate) api_key: String,
    /// The sign-in of the organization's owner.
    #[serde(flatten)]
    pub(crate) owner: SignIn,
    /// All who share a circle and move; the owner is the first of them.
    pub(crate) family: Vec<SignIn>,
    pub(crate) workflows: Vec<String>,
    pub(crate) webhook_url: String,
    pub(crate) webhook_secret: String,
}

/// A person's credentials.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SignIn {
    pub(crate) email: String,
    pub(crate) password: String,
}

impl Demo {
    /// Loads the demo of this home, if it was created.
    pub(crate) fn load(home: &Path) -> Result<Option<Self>, Failure> {
        match fs::read(path(home)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn save(&self, home: &Path) -> Result<(), Failure> {
        let path = path(home);
        let draft = path.with_extension("draft");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        Ok(fs::rename(draft, path)?)
    }
}

/// Prints the demo's addresses, key and sign-in.
pub(crate) fn show(common: &CommonSettings) -> Result<(), Failure> {
    let none = || {
        format!(
            "no demo data in {}: `waypost up` creates it at the first start",
            common.home.display()
        )
    };
    let demo = Demo::load(&common.home)?.ok_or_else(none)?;
    print(&demo)
}

fn path(home: &Path) -> PathBuf {
    home.join("secrets").join("demo.json")
}
