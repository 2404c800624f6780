//! Webhook endpoints: where they listen and which events they get.

mod address;
mod decide;
mod pattern;
mod replay;
mod request;

pub use address::check_url;
pub use decide::{Endpoint, change, create, delete};
pub use pattern::{any_matches, check_pattern, matches, only_positions_match, pattern_of_patterns};
pub use replay::{Disabled, ReplayRequest, replay, rotate_secret, test};
pub use request::{ChangeRequest, Request};

#[cfg(test)]
mod tests;
