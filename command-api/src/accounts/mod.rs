//! Persons' accounts.

pub(crate) mod password;
