//! One run of an import: what it counts and rejects, and the state that it leaves for the next.

use std::io;

use command_api::records::{FilePosition, ImportError, Imported, Rejected};
use event_log::EventLog;

use super::checkpoint::Checkpoint;
use super::progress::Progress;
use super::rejects::{Rejects, Written};
use super::report;
use super::rows::{Outcome, Unreadable};
use crate::Failure;

pub(super) struct Run {
    rejects: Rejects,
    /// `None` if the file cannot be identified.
    checkpoint: Option<Checkpoint>,
    /// What earlier runs have done.
    before: Imported,
    unwritable: Option<io::Error>,
}

/// How progress is saved.
type WriteCheckpoint = fn(&mut Checkpoint, &Imported, Option<Written>) -> io::Result<()>;

impl Run {
    pub(super) fn new(checkpoint: Option<Checkpoint>, rejects: Rejects) -> Self {
        Self {
            rejects,
            checkpoint,
            before: Imported::default(),
            unwritable: None,
        }
    }

    /// Continues what an earlier run has left, from the place that it returns.
    pub(super) fn go_on(&mut self, log: &EventLog) -> Option<FilePosition> {
        let done = self.checkpoint.as_mut()?.read()?;
        let position = done.position.as_ref();
        // A restored log has another epoch, and may lack some of what was done.
        let position = position.map(|text| log.parse_position(text)).transpose();
        let position = position.ok()?;
        let through = done.place();
        if let Some(written) = done.rejects {
            // Without the earlier rejects, the file is read again.
            self.rejects.go_on(written).ok()?;
        }
        self.before = Imported {
            created: done.imported,
            rejected: done.rejected,
            through: Some(through),
            position,
            ..Imported::default()
        };
        eprintln!(
            "An earlier run was interrupted behind row {}; this one goes on there.",
            through.rows
        );
        Some(through)
    }

    /// What the ids of rows without one follow from, if that is another copy of the file.
    pub(super) fn source(&self) -> Option<Vec<u8>> {
        self.checkpoint.as_ref()?.source()
    }

    /// Records what was done since the last call.
    pub(super) fn tell(&mut self, so_far: &Imported, rejected: &[Rejected], progress: &Progress) {
        let total = self.total(so_far);
        progress.show(&total, so_far.imported() + so_far.rejected);
        if let Err(error) = self.rejects.add(rejected) {
            self.checkpoint = None;
            self.unwritable.get_or_insert(error);
        }
        let checkpoint = self.checkpoint.as_ref();
        if checkpoint.is_some_and(|checkpoint| checkpoint.is_due(&total)) {
            self.keep(&total, Checkpoint::write);
        }
    }

    /// Reports how it ended. Only an import of all rows tells how their reading ended.
    pub(super) fn end(
        mut self,
        ended: Result<Imported, ImportError>,
        outcome: Outcome,
    ) -> Result<(), Failure> {
        let imported = match ended {
            Ok(imported) => self.total(&imported),
            Err(mut error) => {
                error.so_far = self.total(&error.so_far);
                self.keep(&error.so_far, Checkpoint::write);
                return Err(error.into());
            }
        };
        if let Err(unreadable) = outcome.get() {
            self.keep(&imported, Checkpoint::write_unreadable);
            return Err(self.broken_off(&unreadable, &imported));
        }
        self.unwritable.map_or(Ok(()), Err)?;
        report(&imported, self.rejects, false)?;
        Ok(self.checkpoint.map_or(Ok(()), Checkpoint::end)?)
    }

    /// What to do about a file that could not be read to its end.
    fn broken_off(&self, unreadable: &Unreadable, total: &Imported) -> Failure {
        let next = if self.checkpoint.is_some() && total.through.is_some() {
            "once the file is whole, the same command goes on there"
        } else {
            "once the file is whole, import it again"
        };
        let (imported, rejected) = (total.imported(), total.rejected);
        let done =
            format!("of the rows before it, {imported} are imported and {rejected} rejected");
        format!("{unreadable}; {done}; {next}").into()
    }

    fn keep(&mut self, total: &Imported, write: WriteCheckpoint) {
        let Some(checkpoint) = &mut self.checkpoint else {
            return;
        };
        let kept = self.rejects.flush();
        if let Err(error) = kept.and_then(|rejects| write(checkpoint, total, rejects)) {
            eprintln!("Were this import interrupted, the next would begin anew: {error}");
            self.checkpoint = None;
        }
    }

    fn total(&self, so_far: &Imported) -> Imported {
        let before = &self.before;
        Imported {
            created: before.created + so_far.created,
            updated: so_far.updated,
            unchanged: so_far.unchanged,
            rejected: before.rejected + so_far.rejected,
            through: so_far.through.or(before.through),
            position: so_far.position.or(before.position),
        }
    }
}
