//! What is still to be written of an import's chunk, over several tries.

use std::borrow::Cow;

use super::batch::{NotWritten, Wanted, Written};
use crate::LogError;

/// The records of a chunk that the log has not confirmed yet, and the outcomes so far.
pub(super) struct Rest<'a> {
    wanted: Cow<'a, [Wanted]>,
    /// Each one's place in the chunk.
    places: Vec<usize>,
    written: Written,
}

impl<'a> Rest<'a> {
    /// All of a chunk.
    pub(super) fn of(chunk: &'a [Wanted]) -> Self {
        Self {
            wanted: Cow::Borrowed(chunk),
            places: (0..chunk.len()).collect(),
            written: Written::nothing(chunk.len()),
        }
    }

    /// What to write next.
    pub(super) fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// Takes the outcomes of a try, after which only what was not confirmed is left. Returns why
    /// that is so.
    pub(super) fn settle(&mut self, tried: Written) -> Option<LogError> {
        let (mut wanted, mut places) = (Vec::new(), Vec::new());
        let tries = self.wanted.iter().zip(&self.places);
        for ((one, &place), outcome) in tries.zip(tried.outcomes) {
            if outcome == Err(NotWritten::Unconfirmed) {
                wanted.push(Wanted {
                    // It may have been written, even if the log did not say so.
                    is_new: false,
                    ..one.clone()
                });
                places.push(place);
            }
            self.written.outcomes[place] = outcome;
        }
        (self.wanted, self.places) = (Cow::Owned(wanted), places);
        self.written.reach(tried.position);
        tried.trouble
    }

    /// The outcomes of the whole chunk.
    pub(super) fn into_written(self) -> Written {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use domain::record::{Change, Kind, parse_object};
    use schemas::RecordId;
    use serde_json::json;

    use super::*;

    fn new(id: &str) -> Wanted {
        let object = json!({"email": "a@b.c"}).as_object().cloned().unwrap();
        let draft = parse_object(Kind::Contacts, object).unwrap();
        Wanted {
            is_new: true,
            ..Wanted::new(RecordId::from(id), draft)
        }
    }

    #[test]
    fn only_rows_that_the_log_did_not_confirm_are_tried_again() {
        let chunk = ["a", "b", "c", "d"].map(new);
        let mut rest = Rest::of(&chunk);
        assert_eq!(rest.wanted().len(), 4);
        let refused = Err(NotWritten::Refused("too large"));
        let mut tried = Written::nothing(4);
        tried.outcomes[0] = Ok(Change::Created);
        tried.outcomes[2] = refused.clone();
        tried.trouble = Some(LogError::HeldBack);
        assert!(matches!(rest.settle(tried), Some(LogError::HeldBack)));
        let left: Vec<_> = rest.wanted().iter().map(|one| one.id.as_str()).collect();
        assert_eq!(left, ["b", "d"]);

        let mut tried = Written::nothing(2);
        tried.outcomes[1] = Ok(Change::Created);
        tried.trouble = Some(LogError::HeldBack);
        assert!(rest.settle(tried).is_some());
        let mut tried = Written::nothing(1);
        tried.outcomes[0] = Ok(Change::Unchanged);
        assert!(rest.settle(tried).is_none());
        assert!(rest.wanted().is_empty());
        let expected = [
            Ok(Change::Created),
            Ok(Change::Unchanged),
            refused,
            Ok(Change::Created),
        ];
        assert_eq!(rest.into_written().outcomes, expected);
    }

    #[test]
    fn a_row_that_was_tried_may_be_there_already() {
        let chunk = [new("a")];
        let mut rest = Rest::of(&chunk);
        assert!(rest.wanted()[0].is_new);
        let mut tried = Written::nothing(1);
        tried.trouble = Some(LogError::Unavailable("no answer".to_owned()));
        rest.settle(tried);
        assert!(
            !rest.wanted()[0].is_new,
            "it is looked up before it is written"
        );
    }
}
