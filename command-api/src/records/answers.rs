//! Lines in, response lines out.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use access::Caller;
use bytes::Bytes;
use domain::FieldError;
use domain::record::{self, Change, Draft, Kind};
use event_log::Position;
use schemas::RecordId;
use serde::Serialize;

use super::batch::{self, LineReceipt, Newness, NotWritten, Target, Wanted, Written};
use super::cells::Cells;
use super::line_splitter::Line;
use super::table::Table;
use crate::repeatable::Repeatable;
use crate::{App, LogError};

/// The sender of lines.
pub(super) struct Sender {
    pub(super) app: App,
    pub(super) caller: Arc<Caller>,
    pub(super) kind: Kind,
    pub(super) repeatable: Repeatable,
    /// The meaning of each line's cells, if lines are rows of a CSV.
    pub(super) table: Option<Table>,
    /// Failures of the log in a row.
    pub(super) failures: AtomicUsize,
    pub(super) newness: Newness,
}

/// After this many failures in a row the log is not tried again for this request.
const GIVE_UP: usize = 3;

/// Response lines, in the order of the lines that they answer.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) bytes: Vec<u8>,
    /// The position at which reads see all that was written.
    pub(super) position: Option<Position>,
    /// Whether any line has its final answer.
    pub(super) confirmed: bool,
    /// Why the log did not confirm some lines.
    pub(super) trouble: Option<LogError>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnswerLine<'a> {
    Written {
        line: u64,
        id: &'a RecordId,
        status: &'static str,
    },
    Failed {
        line: u64,
        error: &'a str,
    },
}

/// Lines that were read, to be written together.
pub(super) struct Read {
    pub(super) wanted: Vec<Wanted>,
    /// The number of each line, and the reason if it is not a record.
    lines: Vec<(u64, Result<(), String>)>,
}

impl Sender {
    pub(super) fn read_all(&self, lines: Vec<Line>) -> Read {
        let mut read = Read {
            wanted: Vec::with_capacity(lines.len()),
            lines: Vec::with_capacity(lines.len()),
        };
        let mut table = self.table.as_ref().map(|table| (table, table.cells()));
        for line in lines {
            let number = line.number;
            let wanted = self.read(line, &mut table).map(|one| read.wanted.push(one));
            read.lines.push((number, wanted));
        }
        read
    }

    /// Writes lines and answers each, also those that the log did not confirm.
    pub(super) async fn write(&self, read: Read) -> Answers {
        let mut answers = Answers::default();
        let written = self.write_records(&read.wanted).await;
        let mut outcomes = read.wanted.iter().zip(written.outcomes);
        for (line, read) in read.lines {
            let outcome = read.map(|()| outcomes.next());
            match outcome {
                Ok(Some((one, Ok(change)))) => answers.written(line, &one.id, change),
                Ok(Some((_, Err(NotWritten::Refused(reason))))) => answers.failed(line, reason),
                Ok(Some((_, Err(NotWritten::Unconfirmed))) | None) => {
                    answers.unconfirmed(line);
                }
                Err(reason) => answers.failed(line, &reason),
            }
        }
        answers.position = written.position;
        answers.trouble = written.trouble;
        answers
    }

    async fn write_records(&self, wanted: &[Wanted]) -> Written {
        if self.failures.load(Ordering::Relaxed) >= GIVE_UP {
            return Written::nothing(wanted.len());
        }
        let key = self.repeatable.name_of_key(&self.caller);
        let target = Target {
            org: &self.caller.org,
            kind: self.kind,
            origin: &self.repeatable.origin,
            key: key.as_deref(),
        };
        let written = batch::write(&self.app.commands, target, &self.newness, wanted).await;
        match &written.trouble {
            Some(error) => {
                tracing::warn!(%error, "Records of a bulk write were not confirmed");
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            None => self.failures.store(0, Ordering::Relaxed),
        }
        written
    }

    fn read(&self, line: Line, table: &mut Option<(&Table, Cells)>) -> Result<Wanted, String> {
        let text = line.text.ok_or("the line is too long")?;
        let draft = match table {
            None => parse(self.kind, &text)?,
            Some((table, cells)) => table.draft(&text, cells)?,
        };
        let (repeatable, line) = (&self.repeatable, line.number);
        let receipt = repeatable.line_receipt(&self.caller, line, || {
            let line = text.trim_ascii();
            let table = self.table.as_ref();
            table.map_or(Cow::Borrowed(line), |table| table.meaning(line).into())
        });
        let receipt = receipt.map(|receipt| LineReceipt { receipt, line });
        let id = draft.id().cloned();
        Ok(Wanted {
            is_new: id.is_none() && receipt.is_none(),
            id: id.unwrap_or_else(|| self.new_id(receipt.as_ref())),
            draft,
            receipt,
        })
    }

    /// A line that may be sent again gets the same id again.
    fn new_id(&self, own: Option<&LineReceipt>) -> RecordId {
        let commands = &self.app.commands;
        RecordId::from(match own {
            None => commands.random.id(),
            Some(own) => {
                let keyring = commands.log().keyring();
                keyring.derived_uuid("record", &[own.receipt.key.as_bytes()])
            }
        })
    }
}

fn parse(kind: Kind, text: &Bytes) -> Result<Draft, String> {
    let value = serde_json::from_slice(text);
    let value = value.map_err(|error| format!("the line is not valid JSON: {error}"))?;
    record::parse(kind, value).map_err(|error: FieldError| error.to_string())
}

impl Answers {
    /// Appends the answers that follow.
    pub(super) fn append(&mut self, next: Self) {
        self.bytes.extend_from_slice(&next.bytes);
        // Chunks are written concurrently, so a later one may precede an earlier one in the log.
        let reached = self.position.into_iter().chain(next.position);
        self.position = reached.max_by_key(|position| position.sequence());
        self.confirmed |= next.confirmed;
        self.trouble = next.trouble.or(self.trouble.take());
    }

    fn written(&mut self, line: u64, id: &RecordId, change: Change) {
        let status = match change {
            Change::Created => "created",
            Change::Updated => "updated",
            Change::Unchanged => "unchanged",
        };
        self.confirmed = true;
        self.push(&AnswerLine::Written { line, id, status });
    }

    pub(super) fn failed(&mut self, line: u64, error: &str) {
        self.confirmed = true;
        self.push(&AnswerLine::Failed { line, error });
    }

    fn unconfirmed(&mut self, line: u64) {
        let error = "the event log did not confirm this line; send it again";
        self.push(&AnswerLine::Failed { line, error });
    }

    fn push(&mut self, answer: &AnswerLine<'_>) {
        // Plain data into memory: neither can fail.
        let _ = serde_json::to_writer(&mut self.bytes, answer);
        self.bytes.push(b'\n');
    }
}
