//! Up to where the positions of a partition have been considered.

use event_log::{Error, EventLog};
use futures::future::join_all;
use serde::Serialize;

use crate::checkpoints::{Checkpoint, Checkpoints, Kind};
use crate::leases::PARTITIONS;

/// Up to which sequence the positions of all persons have been considered, for a backup that is
/// begun after this: whoever goes on from what is restored of it goes on from there. Asks until the
/// log answers.
///
/// # Errors
/// Where the checkpoints cannot be opened.
pub async fn considered(log: &EventLog) -> Result<u64, Error> {
    let checkpoints = Checkpoints::<Through>::open(log, Kind::Geofence).await?;
    let noted = (0..PARTITIONS).map(|partition| checkpoints.glance(partition));
    let noted = join_all(noted).await.into_iter();
    let through = noted.map(|noted| noted.unwrap_or_else(|| Through::at_first(log)));
    Ok(through
        .map(|Through(through)| through)
        .min()
        .unwrap_or_default())
}

/// The sequence up to which crossings have been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Through(pub(super) u64);

impl Through {
    /// Where a partition begins that nothing is noted of. What was considered before a restore is
    /// not considered again: it would be judged by who hides now, and in which circles they are now.
    pub(super) fn at_first(log: &EventLog) -> Self {
        Self(log.considered_before_restore())
    }
}

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
    use crate::checkpoints::testing::{read, read_old, recorded, stored};

    #[test]
    fn a_place_survives_being_stored() {
        assert_eq!(read(&stored(&Through(41))), Some(Through(41)));
    }

    #[test]
    fn what_older_versions_stored_is_read() {
        let read = |stored: &str| read_old(Kind::Geofence, stored.as_bytes());
        assert_eq!(read(recorded::GEOFENCE), Some(Through(41)));
        assert_eq!(
            read("l00000008-41"),
            None,
            "it is of the log before a restore"
        );
    }
}
