//! Temporary files of exports: limits of their number and size, shared by organization.
//!
//! A file has no name, so it disappears once it was sent, its client was abandoned, or the process
//! ended.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use schemas::OrgId;
use service::{Share, Shares};
use tokio_util::io::ReaderStream;

use super::error::ExportError;

/// Piece size of a sent file in bytes.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// The files of all exports. Clones share their state.
#[derive(Clone, Debug)]
pub(super) struct Files {
    places: Shares<OrgId>,
    room: Arc<Mutex<Room>>,
}

/// The bytes of all files. As with places, an organization only gets more while it holds less than
/// is free.
#[derive(Debug)]
struct Room {
    free: u64,
    held: HashMap<OrgId, u64>,
}

/// A file that is written, and later sent.
#[derive(Debug)]
pub(super) struct Spool {
    file: Scratch,
    _place: Share<OrgId>,
}

/// A file that takes its part of the room; by itself, one that is only needed until another one is
/// complete.
#[derive(Debug)]
pub(super) struct Scratch {
    file: File,
    held: Held,
}

/// The bytes that a file takes of the room; dropping this gives them back.
#[derive(Debug)]
struct Held {
    bytes: u64,
    org: OrgId,
    room: Arc<Mutex<Room>>,
}

impl Files {
    pub(super) fn new(files: usize, bytes: u64) -> Self {
        let held = HashMap::new();
        Self {
            places: Shares::new(files),
            room: Arc::new(Mutex::new(Room { free: bytes, held })),
        }
    }

    /// Creates an empty file as soon as the organization may have one more.
    pub(super) async fn begin(&self, org: &OrgId, wait: Duration) -> Result<Spool, ExportError> {
        let place = tokio::time::timeout(wait, self.places.enter(org.clone())).await;
        self.open(org, place.map_err(|_| ExportError::Busy)?)
    }

    /// Creates an empty file if the organization may have one more now.
    pub(super) fn try_begin(&self, org: &OrgId) -> Result<Spool, ExportError> {
        let place = self.places.try_enter(org);
        self.open(org, place.ok_or(ExportError::Busy)?)
    }

    fn open(&self, org: &OrgId, place: Share<OrgId>) -> Result<Spool, ExportError> {
        let file = Scratch::empty(org.clone(), self.room.clone())?;
        metrics::gauge!("waypost_export_files").increment(1);
        Ok(Spool {
            file,
            _place: place,
        })
    }
}

impl Spool {
    /// Returns its length in bytes.
    pub(super) fn length(&self) -> u64 {
        self.file.held.bytes
    }

    /// Creates an empty file that this one is made with.
    pub(super) fn scratch(&self) -> io::Result<Scratch> {
        let Held { org, room, .. } = &self.file.held;
        Scratch::empty(org.clone(), room.clone())
    }

    /// Streams the file from its beginning. It keeps its place until all pieces are taken.
    pub(super) fn pieces(
        mut self,
    ) -> io::Result<impl Stream<Item = Result<Bytes, ExportError>> + Send> {
        self.file.rewind()?;
        let file = tokio::fs::File::from_std(self.file.file.try_clone()?);
        let pieces = ReaderStream::with_capacity(file, PIECE_BYTES);
        Ok(pieces.map(move |piece| {
            let _ = &self;
            piece.map_err(ExportError::from)
        }))
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        metrics::gauge!("waypost_export_files").decrement(1);
    }
}

impl Scratch {
    fn empty(org: OrgId, room: Arc<Mutex<Room>>) -> io::Result<Self> {
        let (file, bytes) = (tempfile::tempfile()?, 0);
        let held = Held { bytes, org, room };
        Ok(Self { file, held })
    }
}

/// Bytes that are written once more at the same place count again: they are few.
impl Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.take(bytes.len() as u64)?;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Read for Scratch {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file.read(bytes)
    }
}

impl Seek for Scratch {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Held {
    /// Takes room for more bytes, if the organization may have it.
    fn take(&mut self, bytes: u64) -> io::Result<()> {
        if !lock(&self.room).take(&self.org, bytes) {
            let full = "the files of exports have no more room";
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        self.bytes += bytes;
        tell(bytes, true);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.room).give_back(&self.org, self.bytes);
        tell(self.bytes, false);
    }
}

impl Room {
    fn take(&mut self, org: &OrgId, bytes: u64) -> bool {
        let held = self.held.get(org).copied().unwrap_or_default();
        let may = held.saturating_add(bytes) <= self.free;
        if may {
            self.free -= bytes;
            self.held.insert(org.clone(), held + bytes);
        }
        may
    }

    fn give_back(&mut self, org: &OrgId, bytes: u64) {
        self.free += bytes;
        if let Some(held) = self.held.get_mut(org) {
            *held -= bytes;
            if *held == 0 {
                self.held.remove(org);
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure of metrics")]
fn tell(bytes: u64, more: bool) {
    let gauge = metrics::gauge!("waypost_export_file_bytes");
    if more {
        gauge.increment(bytes as f64);
    } else {
        gauge.decrement(bytes as f64);
    }
}

fn lock(room: &Mutex<Room>) -> MutexGuard<'_, Room> {
    // No code that holds this lock can panic halfway through a change.
    room.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn what_was_written_is_sent_and_its_room_is_freed() {
        let org = OrgId::from("a");
        let files = Files::new(2, 1_000_000);
        let mut spool = files.try_begin(&org).unwrap();
        let content = vec![7; 100_000];
        spool.write_all(&content).unwrap();
        assert!(files.try_begin(&org).is_err(), "half of the places");
        assert!(files.try_begin(&OrgId::from("b")).is_ok());
        let sent: Vec<Bytes> = spool.pieces().unwrap().try_collect().await.unwrap();
        assert_eq!(sent.concat(), content);
        assert_eq!(lock(&files.room).free, 1_000_000);
        assert!(lock(&files.room).held.is_empty());
    }

    #[test]
    fn an_organization_gets_half_of_the_room() {
        let files = Files::new(8, 1_000);
        let (one, other) = (OrgId::from("a"), OrgId::from("b"));
        let mut spool = files.try_begin(&one).unwrap();
        spool.write_all(&[0; 500]).unwrap();
        let full = spool.write_all(&[0]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        let mut theirs = files.try_begin(&other).unwrap();
        theirs.write_all(&[0; 250]).unwrap();
        drop(spool);
        theirs.write_all(&[0; 250]).unwrap();
    }

    #[test]
    fn what_a_file_is_made_with_takes_room_until_it_is_dropped() {
        let files = Files::new(8, 1_000);
        let spool = files.try_begin(&OrgId::from("a")).unwrap();
        let mut scratch = spool.scratch().unwrap();
        scratch.write_all(&[0; 400]).unwrap();
        scratch.rewind().unwrap();
        let mut read = Vec::new();
        scratch.read_to_end(&mut read).unwrap();
        assert_eq!(read, [0; 400]);
        let mut other = spool.scratch().unwrap();
        let full = other.write_all(&[0; 400]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!((spool.length(), lock(&files.room).free), (0, 600));
        drop(scratch);
        other.write_all(&[0; 400]).unwrap();
        drop((other, spool));
        assert_eq!(lock(&files.room).free, 1_000);
    }
}
