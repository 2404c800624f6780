//! Positions in the log as clients see them.

use std::fmt;
use std::str::FromStr;

use schemas::Log;

/// A place in one of the streams: opaque text to clients. It names the stream's epoch, which a
/// restore changes, so that a position from before is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    log: Log,
    epoch: u32,
    sequence: u64,
}

/// Beyond what any log reaches, and Postgres counts to.
const LAST: u64 = i64::MAX.unsigned_abs() - 1;

/// Why a text is not a position of this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// No position at all.
    #[error("not a position")]
    Malformed,
    /// A position from before a restore: what followed it may differ now.
    #[error("the position is from before the log was restored")]
    OldEpoch,
}

impl Position {
    pub(crate) fn new(log: Log, epoch: u32, sequence: u64) -> Self {
        Self {
            log,
            epoch,
            sequence,
        }
    }

    /// The stream it is in.
    pub fn log(self) -> Log {
        self.log
    }

    /// The sequence of the event at this place; 0 is the place before the first event.
    pub fn sequence(self) -> u64 {
        self.sequence
    }

    /// The epoch of its stream.
    pub fn epoch(self) -> u32 {
        self.epoch
    }
}

fn letter(log: Log) -> char {
    match log {
        Log::Events => 'e',
        Log::Locations => 'l',
        Log::Deliveries => 'd',
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{:08x}-{}",
            letter(self.log),
            self.epoch,
            self.sequence
        )
    }
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let malformed = PositionError::Malformed;
        let log = [Log::Events, Log::Locations, Log::Deliveries]
            .into_iter()
            .find(|log| text.starts_with(letter(*log)))
            .ok_or(malformed)?;
        let (epoch, sequence) = text[1..].split_once('-').ok_or(malformed)?;
        let position = Self {
            log,
            epoch: u32::from_str_radix(epoch, 16).map_err(|_| malformed)?,
            sequence: sequence.parse().map_err(|_| malformed)?,
        };
        // Each position has only one text.
        if position.sequence <= LAST && position.to_string() == text {
            Ok(position)
        } else {
            Err(malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_position_survives_its_text(epoch: u32, sequence in 0..=LAST) {
            let position = Position::new(Log::Events, epoch, sequence);
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }

        #[test]
        fn nothing_is_placed_where_numbers_end(sequence in LAST + 1..=u64::MAX) {
            let text = Position::new(Log::Events, 0, sequence).to_string();
            prop_assert_eq!(text.parse::<Position>(), Err(PositionError::Malformed));
        }

        #[test]
        fn other_text_is_no_position(text in "\\PC{0,20}") {
            if let Ok(position) = text.parse::<Position>() {
                prop_assert_eq!(position.to_string(), text);
            }
        }
    }
}
