//! The outbox: a file that stands in for a service that sends short messages.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use domain::account::Phone;
use serde_json::json;

use super::SendError;

#[derive(Clone, Debug)]
pub(in crate::accounts) struct Outbox(PathBuf);

impl Outbox {
    pub(super) fn new(home: &Path) -> Self {
        Self(home.join("outbox").join("sms.ndjson"))
    }

    pub(super) async fn send(
        &self,
        phone: &Phone,
        code: &str,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let at = now.to_rfc3339_opts(SecondsFormat::Micros, true);
        let line = format!(
            "{}\n",
            json!({"phone": phone.as_str(), "code": code, "at": at})
        );
        let path = self.0.clone();
        let written = tokio::task::spawn_blocking(move || append(&path, &line)).await;
        let failed = |error: &dyn std::error::Error| SendError(error.to_string());
        written
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))
    }
}

/// Each line is a single write, so that several processes may write to one file.
fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut file = OpenOptions::new();
    let mut file = file.append(true).create(true).mode(0o600).open(path)?;
    file.write_all(line.as_bytes())
}
