//! Requests from the pages of an organization's people.

use std::fmt;

use serde_json::Value;

use crate::Invalid;
use crate::account::Email;
use crate::object::{Errors, Object};

/// A request to invite a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitee {
    /// The address.
    pub email: Email,
}

/// A request to join by a link.
#[derive(Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// What the link ends with.
    pub code: String,
    /// The person's name for others, if an account is opened.
    pub name: Option<String>,
    /// The password of the account that the address has, or will have.
    pub password: Option<String>,
}

impl Invitee {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, errors| {
            let email = Email::parse(&object.required_string("email")?);
            let email = email.map_err(|error| errors.take_in(error)).ok()?;
            Some(Self { email })
        })
    }
}

impl Acceptance {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, _| {
            let code = object.required_string("code");
            let (name, password) = (object.string("name"), object.string("password"));
            Some(Self {
                code: code?,
                name,
                password,
            })
        })
    }
}

impl fmt::Debug for Acceptance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptance(…)")
    }
}

fn read<T>(
    body: Value,
    fields: impl FnOnce(&mut Object<'_>, &Errors) -> Option<T>,
) -> Result<T, Invalid> {
    let errors = Errors::default();
    let read = Object::open("", body, &errors).and_then(|mut object| {
        let read = fields(&mut object, &errors);
        object.finish();
        read
    });
    errors.settle(read)
}
