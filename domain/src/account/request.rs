//! Requests that persons send. Unknown fields are ignored: clients of this API add their own.

use std::fmt;

use serde_json::Value;

use super::{Email, Phone, check_password, parse_name};
use crate::object::{Errors, Object};
use crate::{FieldError, Invalid};

/// A request for an account.
#[derive(Clone, PartialEq, Eq)]
pub struct Registration {
    /// What others call the person.
    pub name: String,
    /// The address that the person signs in with.
    pub email: Email,
    /// The password.
    pub password: String,
    /// The phone number that the person claims to hold.
    pub phone: Option<Phone>,
}

/// A request for an access token.
#[derive(Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The address as typed: an impossible one is just unknown.
    pub email: String,
    /// The password.
    pub password: String,
}

/// A request to change the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordChange {
    /// The current password.
    pub old: String,
    /// The new password.
    pub new: String,
}

/// A request to be forgotten.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountDeletion {
    /// The password, which proves the person's identity.
    pub password: String,
}

/// A request for a one-time code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRequest {
    /// Where the code goes.
    pub phone: Phone,
}

/// A request to verify a one-time code.
#[derive(Clone, PartialEq, Eq)]
pub struct Verification {
    /// Where the code was sent.
    pub phone: Phone,
    /// The code as typed: anything but the right one is just wrong.
    pub code: String,
}

impl Registration {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, errors| {
            let name = string(object, "name").and_then(|name| checked(errors, parse_name(&name)));
            let email = string(object, "email");
            let email = email.and_then(|email| checked(errors, Email::parse(&email)));
            let password = new_password(object, errors, "password");
            let before = errors.count();
            let phone = object.string("phone");
            let phone = phone.map(|phone| checked(errors, Phone::parse(&phone)));
            if errors.count() > before {
                return None;
            }
            Some(Self {
                name: name?,
                email: email?,
                password: password?,
                phone: phone.flatten(),
            })
        })
    }
}

impl SignIn {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, _| {
            let (email, password) = (string(object, "email"), string(object, "password"));
            Some(Self {
                email: email?,
                password: password?,
            })
        })
    }
}

impl PasswordChange {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, errors| {
            let old = string(object, "old");
            let new = new_password(object, errors, "new");
            Some(Self {
                old: old?,
                new: new?,
            })
        })
    }
}

impl AccountDeletion {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, _| {
            let password = string(object, "password")?;
            Some(Self { password })
        })
    }
}

impl CodeRequest {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, errors| {
            let phone = phone(object, errors)?;
            Some(Self { phone })
        })
    }
}

impl Verification {
    /// Reads a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        read(body, |object, errors| {
            let (phone, code) = (phone(object, errors), string(object, "code"));
            Some(Self {
                phone: phone?,
                code: code?,
            })
        })
    }
}

macro_rules! hide {
    ($($name:ident),+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    )+};
}

hide!(
    Registration,
    SignIn,
    PasswordChange,
    AccountDeletion,
    Verification
);

fn read<T>(
    body: Value,
    fields: impl FnOnce(&mut Object<'_>, &Errors) -> Option<T>,
) -> Result<T, Invalid> {
    let errors = Errors::default();
    let read = Object::open("", body, &errors).and_then(|mut object| fields(&mut object, &errors));
    errors.settle(read)
}

fn string(object: &mut Object<'_>, name: &str) -> Option<String> {
    object.required_string(name)
}

fn phone(object: &mut Object<'_>, errors: &Errors) -> Option<Phone> {
    let phone = string(object, "phone")?;
    checked(errors, Phone::parse(&phone))
}

fn new_password(object: &mut Object<'_>, errors: &Errors, name: &str) -> Option<String> {
    let password = string(object, name)?;
    checked(errors, check_password(name, &password)).map(|()| password)
}

fn checked<T>(errors: &Errors, value: Result<T, FieldError>) -> Option<T> {
    value.map_err(|error| errors.take_in(error)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_registration_names_all_that_is_wrong_with_it() {
        let wrong = json!({"email": "nobody", "password": "short", "phone": "0151"});
        let error = Registration::parse(wrong).unwrap_err();
        let fields: Vec<_> = error.errors().iter().map(|error| &error.field).collect();
        assert_eq!(fields, ["name", "email", "password", "phone"]);
        assert!(!error.to_string().contains("short"));
    }

    #[test]
    fn a_phone_may_be_left_out_and_unknown_fields_are_passed_over() {
        let right = json!({
            "name": " Ada ", "email": "Ada@Example.org", "password": "long enough",
            "phone": null, "device": "x",
        });
        let registration = Registration::parse(right).unwrap();
        assert_eq!(registration.name, "Ada");
        assert_eq!(registration.email.as_str(), "ada@example.org");
        assert_eq!(registration.phone, None);
        assert_eq!(format!("{registration:?}"), "Registration(…)");
    }

    #[test]
    fn what_signs_in_must_be_strings_and_may_be_wrong() {
        let typed = json!({"email": "no address", "password": "x"});
        assert_eq!(SignIn::parse(typed).unwrap().email, "no address");
        for wrong in [
            json!({"email": 1, "password": "x"}),
            json!({"email": "x"}),
            json!([]),
        ] {
            assert!(SignIn::parse(wrong).is_err());
        }
        let code = json!({"phone": "+4915112345678", "code": 123_456});
        assert!(Verification::parse(code).is_err());
    }
}
