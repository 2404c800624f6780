//! A stream's files: records with their length, each followed by the chain's hash, in files of
//! bounded size.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::chain::{Chain, HASH_BYTES};
use super::manifest::{Section, Source};
use super::record::Record;
use super::{BackupError, Wrong};

/// Files do not grow beyond this.
const FILE_BYTES: u64 = 64 * 1024 * 1024;
const LENGTH_BYTES: u64 = 4;

pub(super) fn file_name(source: Source, number: u32) -> String {
    format!("{}-{number:06}", source.name())
}

/// Writes a stream's files.
pub(super) struct Writer {
    folder: PathBuf,
    file: Option<(BufWriter<File>, PathBuf)>,
    file_bytes: u64,
    /// The most that one file holds, unless it is a single record.
    limit: u64,
    chain: Chain,
    section: Section,
}

impl Writer {
    pub(super) fn new(folder: &Path, source: Source, epoch: u32) -> Self {
        Self {
            folder: folder.to_owned(),
            file: None,
            file_bytes: 0,
            limit: FILE_BYTES,
            chain: Chain::start(source.name()),
            section: Section {
                epoch,
                ..Section::empty(source)
            },
        }
    }

    /// The last sequence that a written record covers.
    pub(super) fn last(&self) -> u64 {
        self.section.last
    }

    pub(super) fn add(&mut self, record: &Record) -> Result<(), BackupError> {
        let body = record.encode();
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let size = LENGTH_BYTES + u64::from(length) + HASH_BYTES as u64;
        if self.file_bytes > 0 && self.file_bytes + size > self.limit {
            self.end_file()?;
        }
        let hash = *self.chain.add(&body);
        let (file, path) = self.file()?;
        let write = |file: &mut BufWriter<File>| {
            file.write_all(&length.to_be_bytes())?;
            file.write_all(&body)?;
            file.write_all(&hash)
        };
        write(file).map_err(file_error(path))?;
        self.file_bytes += size;
        let section = &mut self.section;
        section.bytes += size;
        match record {
            Record::Message(message) => {
                section.messages += 1;
                if section.first == 0 {
                    section.first = message.sequence;
                }
            }
            Record::Gap { from, to } => section.gone += to - from + 1,
        }
        section.last = record.last();
        Ok(())
    }

    /// Syncs everything to disk.
    pub(super) fn finish(mut self) -> Result<Section, BackupError> {
        self.end_file()?;
        self.section.chain = self.chain.to_string();
        Ok(self.section)
    }

    fn file(&mut self) -> Result<&mut (BufWriter<File>, PathBuf), BackupError> {
        if self.file.is_none() {
            self.section.files += 1;
            let name = file_name(self.section.name, self.section.files);
            let path = self.folder.join(name);
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            let file = options.open(&path).map_err(file_error(&path))?;
            self.file = Some((BufWriter::new(file), path));
            self.file_bytes = 0;
        }
        let missing = || BackupError::NotEmpty(self.folder.clone());
        self.file.as_mut().ok_or_else(missing)
    }

    fn end_file(&mut self) -> Result<(), BackupError> {
        let Some((file, path)) = self.file.take() else {
            return Ok(());
        };
        let end = || file.into_inner().map_err(io::Error::from)?.sync_all();
        end().map_err(file_error(&path))
    }
}

/// Reads a stream's files and checks them: it returns only what was written.
pub(super) struct Reader<'m> {
    folder: PathBuf,
    section: &'m Section,
    chain: Chain,
    /// The file that is being read.
    number: u32,
    input: Option<BufReader<File>>,
    /// Bytes of it that are still unread.
    left: u64,
    /// The sequence that comes next.
    next: u64,
}

impl<'m> Reader<'m> {
    pub(super) fn new(folder: &Path, section: &'m Section) -> Self {
        Self {
            folder: folder.to_owned(),
            section,
            chain: Chain::start(section.name.name()),
            number: 0,
            input: None,
            left: 0,
            next: 1,
        }
    }

    /// Returns the next record; `None` once all have been read and nothing is missing.
    pub(super) fn next(&mut self) -> Result<Option<Record>, BackupError> {
        while self.left == 0 {
            if self.number == self.section.files {
                self.check_end()?;
                return Ok(None);
            }
            self.open_next()?;
        }
        let length = u32::from_be_bytes(self.take::<4>()?);
        if u64::from(length) + HASH_BYTES as u64 > self.left {
            return Err(self.wrong(Wrong::Cut));
        }
        let mut body = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.fill(&mut body)?;
        let hash = self.take::<HASH_BYTES>()?;
        let body = Bytes::from(body);
        self.chain.add(&body);
        self.judge(Record::decode(body), &hash).map(Some)
    }

    /// Checks that a record is the one that was written here.
    fn judge(&mut self, record: Option<Record>, hash: &[u8]) -> Result<Record, BackupError> {
        let Some(record) = record else {
            return Err(self.wrong(Wrong::Changed));
        };
        let found = record.first();
        if found > self.next {
            return Err(self.wrong(Wrong::Missing { found }));
        }
        if found < self.next {
            return Err(self.wrong(Wrong::Again { found }));
        }
        if !self.chain.is(hash) {
            return Err(self.wrong(Wrong::Changed));
        }
        self.next = record.last() + 1;
        Ok(record)
    }

    /// Only the chain's end shows that no record is missing after the last, and that no file of
    /// another backup is among these.
    fn check_end(&self) -> Result<(), BackupError> {
        if self.next - 1 < self.section.last {
            return Err(self.wrong(Wrong::Cut));
        }
        if self.next - 1 > self.section.last || self.chain.to_string() != self.section.chain {
            return Err(self.wrong(Wrong::OtherEnd));
        }
        Ok(())
    }

    fn open_next(&mut self) -> Result<(), BackupError> {
        self.number += 1;
        let path = self.path();
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((length, file)) => {
                self.input = Some(BufReader::new(file));
                self.left = length;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.wrong(Wrong::NoFile)),
            Err(source) => Err(BackupError::File { path, source }),
        }
    }

    fn take<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], BackupError> {
        let mut bytes = [0; COUNT];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), BackupError> {
        let count = bytes.len() as u64;
        let enough = count <= self.left;
        let Some(input) = self.input.as_mut().filter(|_| enough) else {
            return Err(self.wrong(Wrong::Cut));
        };
        input.read_exact(bytes).map_err(file_error(&self.path()))?;
        self.left -= count;
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.folder.join(file_name(self.section.name, self.number))
    }

    fn wrong(&self, what: Wrong) -> BackupError {
        BackupError::Wrong {
            stream: self.section.name.name(),
            sequence: self.next,
            file: file_name(self.section.name, self.number),
            what,
        }
    }
}

pub(super) fn file_error(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    |source| BackupError::File { path, source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use local_servers::TemporaryHome;

    use super::*;
    use crate::backup::record::Message;

    fn record(sequence: u64) -> Record {
        Record::Message(Message {
            sequence,
            time: String::new(),
            subject: format!("evt.{sequence}"),
            headers: Vec::new(),
            payload: Bytes::from(vec![7; 100]),
        })
    }

    fn written(folder: &Path) -> Section {
        let mut writer = Writer::new(folder, Source::Events, 1);
        writer.limit = 1_000;
        for sequence in 1..=50 {
            writer.add(&record(sequence)).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(folder: &Path, section: &Section) -> Result<u64, BackupError> {
        let mut reader = Reader::new(folder, section);
        let mut last = 0;
        while let Some(found) = reader.next()? {
            assert_eq!(found, record(last + 1));
            last += 1;
        }
        Ok(last)
    }

    #[test]
    fn files_are_bounded_and_read_as_one() {
        let home = TemporaryHome::new().unwrap();
        let section = written(home.path());
        assert!(section.files >= 8, "{}", section.files);
        let mut bytes = 0;
        for number in 1..=section.files {
            let path = home.path().join(file_name(Source::Events, number));
            let length = fs::metadata(path).unwrap().len();
            assert!(length <= 1_000);
            bytes += length;
        }
        assert_eq!(bytes, section.bytes);
        assert_eq!(read(home.path(), &section).unwrap(), 50);
    }

    #[test]
    fn a_missing_or_misplaced_backup_file_is_detected() {
        let home = TemporaryHome::new().unwrap();
        let section = written(home.path());
        let path = |number| home.path().join(file_name(Source::Events, number));
        let wrong = || match read(home.path(), &section) {
            Err(BackupError::Wrong { what, sequence, .. }) => (what, sequence),
            other => panic!("{other:?}"),
        };
        fs::rename(path(2), path(99)).unwrap();
        let (what, second) = wrong();
        assert_eq!(what, Wrong::NoFile);
        fs::rename(path(3), path(2)).unwrap();
        let (what, sequence) = wrong();
        assert!(matches!(what, Wrong::Missing { found } if found > second));
        assert_eq!(sequence, second);
        fs::rename(path(99), path(3)).unwrap();
        assert_eq!(wrong().1, second);
    }
}
