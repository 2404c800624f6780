//! Changes that are made only if the same thing has not been changed in the meantime.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};

/// Identifies a state of something that is replaced as a whole, so that a client that changes it
/// can say which state it has seen. It is the text within an `ETag`'s quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision(String);

impl Revision {
    /// The revision of a record, given by its `updatedAt`.
    pub fn of_record(updated_at: DateTime<Utc>) -> Self {
        Self(updated_at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    /// The revision of a workflow, given by its `version`.
    pub fn of_workflow(version: impl fmt::Display) -> Self {
        Self(version.to_string())
    }

    /// The revision as an `ETag`.
    pub fn etag(&self) -> String {
        format!("\"{self}\"")
    }

    /// A revision named by a client.
    pub fn named(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state that a change expects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Any state, or nothing.
    #[default]
    None,
    /// Nothing yet (`If-None-Match: *`).
    Absent,
    /// Something, whatever its state (`If-Match: *`).
    Present,
    /// One of these states (`If-Match`).
    Seen(Vec<Revision>),
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// The state has changed.
    #[error(
        "If-Match: somebody else has changed it since it was read; read it again, and repeat your \
         change with the ETag of that answer"
    )]
    Changed,
    /// There is nothing to change (any more).
    #[error("If-Match: it does not exist (any more); leave out If-Match to create it")]
    Gone,
    /// It already exists.
    #[error(
        "If-None-Match: it exists already; choose another id, or leave out If-None-Match to \
         replace it"
    )]
    Exists,
}

impl Precondition {
    /// Checks whether a change may be made to something in this state, or to nothing.
    pub fn check(&self, current: Option<&Revision>) -> Result<(), Unmet> {
        match (self, current) {
            (Self::None, _) | (Self::Absent, None) | (Self::Present, Some(_)) => Ok(()),
            (Self::Absent, Some(_)) => Err(Unmet::Exists),
            (Self::Present | Self::Seen(_), None) => Err(Unmet::Gone),
            (Self::Seen(seen), Some(current)) if seen.contains(current) => Ok(()),
            (Self::Seen(_), Some(_)) => Err(Unmet::Changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_meets_what_it_expects_or_is_not_made() {
        let (old, new) = (Revision::of_workflow(1), Revision::of_workflow(2));
        let seen = Precondition::Seen(vec![old.clone()]);
        for (precondition, current, met) in [
            (&Precondition::None, None, Ok(())),
            (&Precondition::None, Some(&new), Ok(())),
            (&Precondition::Absent, None, Ok(())),
            (&Precondition::Absent, Some(&new), Err(Unmet::Exists)),
            (&Precondition::Present, Some(&new), Ok(())),
            (&Precondition::Present, None, Err(Unmet::Gone)),
            (&seen, Some(&old), Ok(())),
            (&seen, Some(&new), Err(Unmet::Changed)),
            (&seen, None, Err(Unmet::Gone)),
        ] {
            assert_eq!(precondition.check(current), met, "{precondition:?}");
        }
    }

    #[test]
    fn the_revision_of_a_record_is_its_time_as_json_writes_it() {
        for micros in [
            1_795_000_000_000_000,
            1_795_000_000_120_000,
            1_795_000_000_000_001,
        ] {
            let time = DateTime::from_timestamp_micros(micros).unwrap();
            let json = serde_json::to_string(&time).unwrap();
            assert_eq!(json, Revision::of_record(time).etag());
        }
    }
}
