//! Circles: who sees whom, and which places are watched.
//!
//! [`Circles`] is the fold of all circles and of persons' choices about sharing; [`Circle`] is one
//! of them, on which commands are decided.

mod bounds;
mod circle;
mod decide;
mod disclosure;
mod fold;
mod period;
mod request;
mod sharing;
mod stored_time;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use bounds::{Bounds, Full, JOINS};
pub use circle::{Circle, Invite, Place};
pub use decide::{CannotJoin, NotMember, add_place, create, invite, join, leave, remove_place};
pub use disclosure::{Disclosure, DisclosureKind};
pub use fold::{Circles, FOLLOWED_ONE_BY_ONE, Viewer};
pub use period::Period;
pub use request::{JoinRequest, NameRequest, PlaceRequest};
pub use sharing::{PauseRequest, Pauses, pause, resume};
