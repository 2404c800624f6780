//! Decides commands on a circle, given the circle.

use chrono::{DateTime, Utc};
use schemas::circle::{
    CircleOwner, Created, InviteMade, MemberJoined, MemberLeft, PlaceAdded, PlaceRemoved,
};
use schemas::{AccountId, CircleId, Event, PlaceId, Sealed};

use super::Circle;

/// The caller is not a member, and need not learn that the circle exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("circle not found")]
pub struct NotMember;

/// Why a code cannot be used to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotJoin {
    /// No circle has an invite with it.
    #[error("code: unknown invitation code")]
    UnknownCode,
    /// It used to be valid.
    #[error("code: this invitation has expired; ask for a new one")]
    Expired,
}

/// Creates a circle. A person who creates one is its first member.
pub fn create(circle_id: CircleId, owner: CircleOwner, name: Sealed) -> Vec<Event> {
    let first = match owner {
        CircleOwner::Account(user_id) => Some(user_id),
        CircleOwner::Organization(_) => None,
    };
    let created = Event::CircleCreated(Created {
        circle_id: circle_id.clone(),
        owner,
        name,
    });
    let joined =
        first.map(|user_id| Event::CircleMemberJoined(MemberJoined { circle_id, user_id }));
    [Some(created), joined].into_iter().flatten().collect()
}

/// Creates an invite on behalf of a member, or of the organization that owns the circle (`None`).
pub fn invite(
    circle: Option<&Circle>,
    by: Option<AccountId>,
    code_hash: String,
    expires_at: DateTime<Utc>,
) -> Result<Event, NotMember> {
    let circle = circle.ok_or(NotMember)?;
    let may = match (&circle.owner, by) {
        (_, Some(member)) => circle.has(member),
        (CircleOwner::Organization(_), None) => true,
        (CircleOwner::Account(_), None) => false,
    };
    if !may {
        return Err(NotMember);
    }
    Ok(Event::CircleInviteMade(InviteMade {
        circle_id: circle.id.clone(),
        code_hash,
        expires_at,
    }))
}

/// Joins with a code; no event if the person is already a member.
pub fn join(
    circle: Option<&Circle>,
    user_id: AccountId,
    code_hash: &str,
    now: DateTime<Utc>,
) -> Result<Option<Event>, CannotJoin> {
    let circle = circle.ok_or(CannotJoin::UnknownCode)?;
    let invite = circle.invite(code_hash).ok_or(CannotJoin::UnknownCode)?;
    if circle.has(user_id) {
        return Ok(None);
    }
    if invite.expires_at <= now {
        return Err(CannotJoin::Expired);
    }
    let circle_id = circle.id.clone();
    Ok(Some(Event::CircleMemberJoined(MemberJoined {
        circle_id,
        user_id,
    })))
}

/// Leaves a circle.
pub fn leave(circle: Option<&Circle>, user_id: AccountId) -> Result<Event, NotMember> {
    let circle_id = of_member(circle, user_id)?.id.clone();
    Ok(Event::CircleMemberLeft(MemberLeft { circle_id, user_id }))
}

/// Adds a place to watch.
pub fn add_place(
    circle: Option<&Circle>,
    by: AccountId,
    place_id: PlaceId,
    place: Sealed,
) -> Result<Event, NotMember> {
    let circle_id = of_member(circle, by)?.id.clone();
    Ok(Event::CirclePlaceAdded(PlaceAdded {
        circle_id,
        place_id,
        by,
        place,
    }))
}

/// Removes a watched place; `None` if it is not watched.
pub fn remove_place(
    circle: Option<&Circle>,
    by: AccountId,
    place_id: &PlaceId,
) -> Result<Option<Event>, NotMember> {
    let circle = of_member(circle, by)?;
    Ok(circle.place(place_id).map(|place| {
        Event::CirclePlaceRemoved(PlaceRemoved {
            circle_id: circle.id.clone(),
            place_id: place.id.clone(),
        })
    }))
}

fn of_member(circle: Option<&Circle>, account: AccountId) -> Result<&Circle, NotMember> {
    circle.filter(|circle| circle.has(account)).ok_or(NotMember)
}
