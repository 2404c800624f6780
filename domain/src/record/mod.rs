//! Business records: companies, deals, contacts, orders, leads and clients.
//!
//! Each event carries the whole record, so a record's state is its last event. A kind declares its
//! fields once (see [`fields`]) and gets reading, checking and deciding from here.

mod decide;
mod draft;
mod fields;
mod kind;
mod row;
mod value;
mod values;

pub use decide::{Change, Exists, create, delete, put, revision};
pub use draft::{Draft, parse, parse_id, parse_object};
pub use kind::{Kind, change_of, is_deletion};
pub use row::Columns;

#[cfg(test)]
mod tests;
