//! Business records: contacts now, the other kinds by the same pattern.
//!
//! Each event carries the whole record, so a record's state is its last event. A kind states its
//! fields once (see [`contact`]) and gets reading, checking and deciding from here.

mod contact;
mod decide;
mod draft;
mod kind;
mod row;
mod value;

pub use decide::{Change, Exists, create, delete, put};
pub use draft::{Draft, parse_id, parse_object};
pub use kind::{Kind, change_of};
pub use row::Columns;

#[cfg(test)]
mod tests;
