//! How far the replays and tests that an endpoint's owner asked for are carried out.

use serde::{Deserialize, Serialize};

/// A place among an endpoint's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestCursor {
    /// Every request up to this sequence is carried out.
    pub(super) done: u64,
    /// The next one is, up to this sequence of the stream that it is about.
    pub(super) cursor: u64,
}

impl RequestCursor {
    /// With nothing open that was asked for up to `sequence`.
    pub(super) fn behind(sequence: u64) -> Self {
        Self {
            done: sequence,
            cursor: 0,
        }
    }
}

/// An endpoint's requests. Only their places are held: they are read from the log one after the
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

    /// One more has come.
    pub(super) fn ask(&mut self, sequence: u64) {
        self.asked = self.asked.max(sequence);
    }

    /// How far they are; `None` where all are carried out.
    pub(super) fn open(&self) -> Option<RequestCursor> {
        (self.place.done < self.asked).then_some(self.place)
    }

    /// Where to carry on, unless somebody does.
    pub(super) fn begin(&mut self) -> Option<RequestCursor> {
        let place = self.open().filter(|_| !self.replaying)?;
        self.replaying = true;
        Some(place)
    }

    /// Somebody carried on up to a place, or could not.
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
