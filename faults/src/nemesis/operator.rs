//! What an operator does with the command line under faults: it runs alongside the deeds that
//! follow, which may interrupt it.

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Deed, Nemesis};
use crate::notes::Complaint;

/// Read models that are verified and rebuilt.
const PROJECTIONS: &[&str] = &[
    "contacts",
    "orders",
    "runs",
    "workflows",
    "webhooks",
    "deliveries",
    "accounts",
    "circles",
    "positions",
];
/// How long a command may take once nothing is hurt any more.
const ENDING: Duration = Duration::from_mins(5);
const TOLD: &str = "what an operator's commands said was so";
const ENDS: &str = "an operator's commands ended";

/// A command in progress.
pub(super) struct Operation {
    deed: Deed,
    /// The projection, the folder of the backup, or whose key it is.
    about: String,
    began: Instant,
    output: JoinHandle<std::io::Result<Output>>,
}

impl Nemesis {
    /// Starts a command, unless one is still in progress.
    pub(super) async fn operate(&mut self, deed: Deed) {
        self.end_operation(Duration::ZERO).await;
        if self.operation.is_some() {
            return;
        }
        let about = match deed {
            Deed::Backup => self.backup().display().to_string(),
            Deed::MasterKey => "the home".to_owned(),
            _ => self.dice.pick(PROJECTIONS).unwrap_or_default().to_owned(),
        };
        let arguments = match deed {
            Deed::Backup => vec!["backup", &about],
            Deed::Rebuild => vec!["projection", "rebuild", &about],
            // A process that is cut off for longer has to reread the key file.
            Deed::MasterKey => vec!["master-key", "rotate", "--settle-seconds", "3"],
            _ => vec!["projection", "verify", &about],
        };
        let child = self.system.begin_waypost(&arguments);
        self.operation = Some(Operation {
            deed,
            about,
            began: Instant::now(),
            output: tokio::spawn(child.wait_with_output()),
        });
    }

    /// Waits up to `max_wait` for the command in progress, and judges its output. An interrupted
    /// one has reported nothing.
    async fn end_operation(&mut self, max_wait: Duration) {
        let Some(mut operation) = self.operation.take() else {
            return;
        };
        let Ok(ended) = timeout(max_wait, &mut operation.output).await else {
            self.operation = Some(operation);
            return;
        };
        let output = ended.expect("a task").expect("waypost");
        let what = format!("{} of {}", operation.deed, operation.about);
        let came = if output.status.success() {
            "ended well"
        } else {
            "broken off"
        };
        let deed = format!("({came}: {})", operation.deed);
        self.done
            .add(deed, operation.about.clone(), operation.began);
        let wrong = match operation.deed {
            Deed::Backup if output.status.success() => self.wrong_with_backup().await,
            Deed::Verify => differences(&output),
            _ => None,
        };
        self.judge(TOLD, what, "so", wrong);
    }

    /// Waits until the last command has ended, as all must once nothing is hurt any more.
    pub(super) async fn end_operations(&mut self) {
        self.end_operation(ENDING).await;
        let late = self.operation.take().map(|operation| {
            operation.output.abort();
            format!("{} of {}: not yet", operation.deed, operation.about)
        });
        let expected = format!("within {ENDING:?}");
        self.judge(ENDS, "the last one".to_owned(), &expected, late);
    }

    fn judge(&self, check: &'static str, what: String, expected: &str, wrong: Option<String>) {
        let notes = &self.load.client.notes;
        match wrong {
            None => notes.right(check),
            Some(found) => notes.complain(Complaint {
                check,
                what,
                expected: expected.to_owned(),
                found,
            }),
        }
    }

    fn backup(&self) -> PathBuf {
        let folder = self.system.home().join("backup");
        // Left behind by an earlier backup, complete or not.
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    /// Checks that a backup that was taken is complete.
    async fn wrong_with_backup(&self) -> Option<String> {
        let folder = self.system.home().join("backup");
        let arguments = ["backup", "verify", folder.to_str().expect("UTF-8")];
        let output = self.system.waypost_output(&arguments, b"").await;
        (!output.status.success()).then(|| said(&output))
    }
}

/// Differences found by a verification; `None` if it was interrupted.
fn differences(output: &Output) -> Option<String> {
    let told: Value = serde_json::from_slice(&output.stdout).ok()?;
    (told["differences"] != 0).then(|| format!("{told} {}", said(output)))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
