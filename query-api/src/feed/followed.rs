//! The part of the log that a reader follows. Of positions, only those of an organization's members
//! are followed, as long as these are few.

use domain::circles::FOLLOWED_ONE_BY_ONE;
use event_log::{Batch, EventLog, ReadError, Tail, TailError, Whose};
use schemas::{AggregateType, Log, OrgId, StreamId};

use super::sharing::Sharing;

/// What a reader follows.
pub(super) struct Followed {
    /// `None` if nobody's positions are to be followed.
    events: Option<Tail>,
    /// Tells when members join who are not followed yet.
    joining: Option<Joining>,
    /// Whether these are everybody's positions, in which those of the members are searched.
    scans: bool,
}

/// The organization's circles, followed while its members are followed individually.
struct Joining {
    circles: Tail,
    /// How many members are followed.
    members: usize,
}

/// What was waited for.
pub(super) enum Taken {
    Events(Batch),
    /// Somebody may have joined.
    Circles,
}

impl Followed {
    /// Follows what the events come from.
    pub(super) fn all(events: Tail) -> Self {
        Self {
            events: Some(events),
            joining: None,
            scans: false,
        }
    }

    /// Follows an organization's events.
    pub(super) async fn of_organization(
        log: &EventLog,
        org: &OrgId,
        after: u64,
    ) -> Result<Self, ReadError> {
        let whose = Whose::Organization(org, None);
        Ok(Self::all(log.read_for(Log::Events, whose, after).await?))
    }

    /// Follows the positions of an organization's members after `after`. If the feed goes on, people
    /// may join who are not members yet.
    pub(super) async fn positions(
        log: &EventLog,
        sharing: &Sharing,
        after: u64,
        goes_on: bool,
    ) -> Result<Self, ReadError> {
        let members = sharing.members();
        if members.len() > FOLLOWED_ONE_BY_ONE {
            let whose = Whose::Kind(AggregateType::Track);
            let events = log.read_for(Log::Locations, whose, after).await?;
            return Ok(Self {
                events: Some(events),
                joining: None,
                scans: true,
            });
        }
        let tracks: Vec<_> = members.map(StreamId::of_track).collect();
        let events = if tracks.is_empty() {
            None
        } else {
            let whose = Whose::Aggregates(&tracks);
            Some(log.read_for(Log::Locations, whose, after).await?)
        };
        let joining = if goes_on {
            Some(Joining::follow(log, sharing).await?)
        } else {
            None
        };
        Ok(Self {
            events,
            joining,
            scans: false,
        })
    }

    /// Whether everybody's positions are read for a few of them.
    pub(super) fn scans(&self) -> bool {
        self.scans
    }

    /// Whether a member has joined who is not followed.
    pub(super) fn lacks_any_of(&self, sharing: &Sharing) -> bool {
        let joining = self.joining.as_ref();
        joining.is_some_and(|joining| joining.members != sharing.members().len())
    }

    /// Waits for something, then takes up to `max` events. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self, max: usize) -> Result<Taken, TailError> {
        match (&mut self.events, &mut self.joining) {
            (Some(events), None) => Ok(Taken::Events(events.next(max).await?)),
            (None, Some(joining)) => joining.next(max).await,
            (Some(events), Some(joining)) => tokio::select! {
                taken = events.next(max) => Ok(Taken::Events(taken?)),
                joined = joining.next(max) => joined,
            },
            (None, None) => std::future::pending().await,
        }
    }

    /// Whether nothing more was there when the log was last heard from.
    pub(super) fn caught_up(&self) -> bool {
        self.events.as_ref().is_none_or(Tail::caught_up)
    }

    /// The sequence of the last event taken; `None` if there is nobody to follow.
    pub(super) fn last_sequence(&self) -> Option<u64> {
        self.events.as_ref().map(Tail::last_sequence)
    }
}

impl Joining {
    async fn follow(log: &EventLog, sharing: &Sharing) -> Result<Self, ReadError> {
        let whose = Whose::Organization(sharing.org(), Some(AggregateType::Circle));
        let after = sharing.circles_through();
        Ok(Self {
            circles: log.read_for(Log::Events, whose, after).await?,
            members: sharing.members().len(),
        })
    }

    async fn next(&mut self, max: usize) -> Result<Taken, TailError> {
        self.circles.next(max).await?;
        Ok(Taken::Circles)
    }
}
