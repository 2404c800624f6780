//! Persons' accounts.

mod identity;
mod request;
mod state;

pub use identity::{Email, Phone, check_password, may_be_password, parse_name};
pub use request::{
    AccountDeletion, CodeRequest, PasswordChange, Registration, SignIn, Verification,
};
pub use state::{Account, Named};
