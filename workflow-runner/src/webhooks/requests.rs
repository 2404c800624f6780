//! Progress of the replays and tests that an endpoint's owner requested.

use serde::{Deserialize, Serialize};

/// A position among an endpoint's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestCursor {
    /// Every request up to this sequence is done.
    pub(super) done: u64,
    /// The next one is done up to this sequence of the stream that it is about.
    pub(super) cursor: u64,
}

impl RequestCursor {
    /// A cursor with nothing open that was requested up to `sequence`.
    pub(super) fn behind(sequence: u64) -> Self {
        Self {
            done: sequence,
            cursor: 0,
        }
    }
}

/// An endpoint's requests. Only their positions are kept: they are read from the log one after the
/// other.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The sequence of the last one.
    asked: u64,
    place: RequestCursor,
    replaying: bool,
}

impl Requests {
    pub(super) fn new(asked: u64, place: RequestCursor) -> Self {
        Self {
            asked,
            place,
            replaying: false,
        }
    }

    /// Records a new request.
    pub(super) fn ask(&mut self, sequence: u64) {
        self.asked = self.asked.max(sequence);
    }

    /// The position of the first open request; `None` if all are done.
    pub(super) fn open(&self) -> Option<RequestCursor> {
        (self.place.done < self.asked).then_some(self.place)
    }

    /// The position to continue from, unless a replay is already running.
    pub(super) fn begin(&mut self) -> Option<RequestCursor> {
        let place = self.open().filter(|_| !self.replaying)?;
        self.replaying = true;
        Some(place)
    }

    /// Ends a replay that got up to `place`, or failed.
    pub(super) fn end(&mut self, place: Option<RequestCursor>) {
        self.replaying = false;
        if let Some(place) = place {
            self.place = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_carried_on_one_at_a_time_until_none_is_open() {
        let start = RequestCursor { done: 5, cursor: 0 };
        let mut requests = Requests::new(5, start);
        assert_eq!(requests.begin(), None);
        requests.ask(9);
        requests.ask(7);
        assert_eq!(requests.begin(), Some(start));
        assert_eq!(requests.begin(), None, "somebody does already");
        requests.end(None);
        assert_eq!(requests.begin(), Some(start));
        let midway = RequestCursor { done: 5, cursor: 3 };
        requests.end(Some(midway));
        assert_eq!(requests.open(), Some(midway));
        requests.begin();
        requests.end(Some(RequestCursor { done: 9, cursor: 0 }));
        assert_eq!((requests.open(), requests.begin()), (None, None));
    }
}
