//! Places that a reader has reached, and whether the log is still the one they were in.

use std::fmt;
use std::str::FromStr;

use schemas::{EventId, Log};

use crate::envelope::event_id;
use crate::read::StreamReader;
use crate::{EventLog, ReadError};

/// How far a reader has read a stream of the log, with the event at that place. Kept beside what
/// was made of the events, it shows later whether the log has gone back since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Everything up to this sequence was read.
    pub sequence: u64,
    /// The event at this sequence, if there was one that was read.
    pub event: Option<EventId>,
}

impl Mark {
    /// A place whose event is not given.
    pub(crate) fn at(sequence: u64) -> Self {
        Self {
            sequence,
            event: None,
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sequence)?;
        match self.event {
            Some(event) => write!(f, " {event}"),
            None => Ok(()),
        }
    }
}

/// A text that is not a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a mark")]
pub struct NoMark;

impl FromStr for Mark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        let mut words = text.split(' ');
        let sequence = words.next().and_then(|word| word.parse().ok());
        let event = words.next().map(|word| word.parse().map(EventId));
        Ok(Self {
            sequence: sequence.ok_or(NoMark)?,
            event: event.transpose().map_err(|_: uuid::Error| NoMark)?,
        })
    }
}

/// A stream of the log no longer holds what was read of it: its servers' data was put back, or they
/// lost its end. New events take the numbers of those that are gone, so nothing that was made of
/// these can be continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stream {stream} has gone back: event {sequence} was read, and {now}. Put the servers' \
     newer data back, or restore a backup. To go on with what is left, back it up and restore that \
     into an empty system"
)]
pub struct WentBack {
    /// The stream.
    pub stream: String,
    /// The event's sequence.
    pub sequence: u64,
    /// What is there now.
    pub now: Instead,
}

/// What is there instead of an event that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The stream ends before it.
    End(u64),
    /// Another event.
    Another,
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End(end) => write!(f, "the stream ends at {end}"),
            Self::Another => f.write_str("another event is there now"),
        }
    }
}

/// Why reading cannot continue from a kept mark.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// The log has gone back.
    #[error(transparent)]
    WentBack(#[from] WentBack),
    /// The log does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl EventLog {
    /// The newest event that any follower in this process has taken of a stream: everything made of
    /// the stream in this process was made of events up to there.
    pub fn newest_taken(&self, log: Log) -> Mark {
        self.followed(log).newest()
    }

    /// Checks that a stream of the log still holds what was read of it up to a mark.
    ///
    /// # Errors
    /// If it has gone back, or does not answer.
    pub async fn check(&self, log: Log, mark: Mark) -> Result<(), MarkError> {
        self.reader(log).check(mark).await
    }
}

impl StreamReader {
    /// As [`EventLog::check`]. One round trip if the event is there.
    pub(crate) async fn check(&self, mark: Mark) -> Result<(), MarkError> {
        let went_back = |now| WentBack {
            stream: self.name().to_owned(),
            sequence: mark.sequence,
            now,
        };
        if let Some(event) = mark.event
            && let Some(found) = self.get(mark.sequence).await?
        {
            return match event_id(&found.headers) {
                Some(id) if id == event => Ok(()),
                _ => Err(went_back(Instead::Another).into()),
            };
        }
        // It may have been erased or have expired since.
        let end = self.state().await?.last_sequence;
        if end < mark.sequence {
            return Err(went_back(Instead::End(end)).into());
        }
        Ok(())
    }
}
