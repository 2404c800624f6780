//! The limits of one circle.

use chrono::{DateTime, Utc};

use schemas::AccountId;

use super::Circle;

/// How often one person may join a circle. Each time is kept, for who may see what was then.
pub const JOINS: usize = 50;

/// The most that a circle may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Members at a time.
    pub members: usize,
    /// Places that it watches at a time.
    pub places: usize,
    /// Invitations that have not expired.
    pub invites: usize,
}

/// A circle has reached one of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Members.
    #[error("the circle has {0} members, the most it may have; one of them has to leave first")]
    Members(usize),
    /// Times that the person has joined.
    #[error(
        "you have joined this circle {0} times, the most one may; ask to be invited to another one"
    )]
    Joins(usize),
    /// Places.
    #[error("the circle watches {0} places, the most it may watch; delete one of them first")]
    Places(usize),
    /// Open invitations.
    #[error(
        "the circle has {0} open invitations, the most it may have; pass on one of them (a code \
         serves many people), or try again when one has expired"
    )]
    Invites(usize),
}

impl Full {
    /// The limit's name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Members(_) => "members",
            Self::Joins(_) => "joins",
            Self::Places(_) => "places",
            Self::Invites(_) => "invites",
        }
    }
}

impl Bounds {
    /// Whether a circle may have this person, who is no member now, as one more member.
    pub fn one_more_member(&self, circle: Option<&Circle>, new: AccountId) -> Result<(), Full> {
        let joins = circle.map_or(0, |circle| circle.joins(new));
        room(joins, JOINS, Full::Joins)?;
        let members = circle.map_or(0, |circle| circle.members().count());
        room(members, self.members, Full::Members)
    }

    /// Whether a circle may watch one more place.
    pub fn one_more_place(&self, circle: Option<&Circle>) -> Result<(), Full> {
        let places = circle.map_or(0, |circle| circle.places().count());
        room(places, self.places, Full::Places)
    }

    /// Whether a circle may have one more invitation.
    pub fn one_more_invite(&self, circle: Option<&Circle>, now: DateTime<Utc>) -> Result<(), Full> {
        let open = circle.map_or(0, |circle| circle.open_invites(now));
        room(open, self.invites, Full::Invites)
    }
}

fn room(there: usize, most: usize, full: impl FnOnce(usize) -> Full) -> Result<(), Full> {
    if there < most {
        Ok(())
    } else {
        Err(full(most))
    }
}
