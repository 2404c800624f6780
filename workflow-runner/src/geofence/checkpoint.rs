//! The sequence up to which the positions of a partition have been considered.

use serde::Serialize;

use crate::checkpoints::Checkpoint;

/// The sequence up to which crossings have been recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Through(pub(super) u64);

impl Checkpoint for Through {
    const FORM: u8 = 1;

    type Body = ();
    type Mark = Self;

    fn new(through: u64, (): ()) -> Option<Self> {
        Some(Self(through))
    }

    fn mark(&self) -> Self {
        *self
    }

    fn through(&self) -> u64 {
        self.0
    }

    fn body(&self) -> impl Serialize {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoints::Kind;
    use crate::checkpoints::testing::{read, read_old, recorded, stored};

    #[test]
    fn a_place_survives_being_stored() {
        assert_eq!(read(&stored(&Through(41))), Some(Through(41)));
    }

    #[test]
    fn what_older_versions_stored_is_read() {
        let read = |stored: &str| read_old(Kind::Geofence, stored.as_bytes());
        assert_eq!(read(recorded::GEOFENCE), Some(Through(41)));
        assert_eq!(read("l00000008-41"), None, "it is of another log");
    }
}
