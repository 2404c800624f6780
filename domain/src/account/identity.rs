//! Rules for what identifies a person: names, e-mail addresses, phone numbers and passwords.

use std::fmt;

use crate::{FieldError, text};

const MAX_NAME: usize = 200;
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
const MAX_EMAIL: usize = 254;
const MAX_LOCAL_PART: usize = 64;
const MAX_LABEL: usize = 63;
const MIN_PASSWORD: usize = 8;
/// Hashing costs time for each byte; no person types more than this.
const MAX_PASSWORD: usize = 256;

/// An e-mail address in the one form under which it is unique: trimmed, in lower case.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// Parses an address that mail could reach.
    pub fn parse(given: &str) -> Result<Self, FieldError> {
        let wrong =
            || FieldError::new("email", "must be an e-mail address such as ada@example.com");
        let email = given.trim().to_lowercase();
        let (local, domain) = email.rsplit_once('@').ok_or_else(wrong)?;
        let fits = email.len() <= MAX_EMAIL && is_local_part(local) && is_domain(domain);
        if fits { Ok(Self(email)) } else { Err(wrong()) }
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Email {
    /// An address is personal and does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email(…)")
    }
}

/// A phone number in E.164: `+`, the country's code and the number, 15 digits at most.
#[derive(Clone, PartialEq, Eq)]
pub struct Phone(String);

impl Phone {
    /// Parses a number as given; there is only one way to write it.
    pub fn parse(given: &str) -> Result<Self, FieldError> {
        let digits = given.strip_prefix('+').unwrap_or_default();
        let fits = PHONE_DIGITS.contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && !digits.starts_with('0');
        if fits {
            return Ok(Self(given.to_owned()));
        }
        let rule = "must be an E.164 phone number such as +4915112345678";
        Err(FieldError::new("phone", rule))
    }

    /// The number.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Phone {
    /// A number is personal and does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Phone(…)")
    }
}

/// Quoted local parts are legal but unused; one that is typed is a mistake.
fn is_local_part(local: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "\"(),:;<>@[\\]".contains(c);
    (1..=MAX_LOCAL_PART).contains(&local.len())
        && !local.contains(odd)
        && local.split('.').all(|part| !part.is_empty())
}

fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    domain.contains('.') && domain.split('.').all(label)
}

/// Parses a person's name.
pub fn parse_name(given: &str) -> Result<String, FieldError> {
    text::name("name", given, MAX_NAME)
}

/// Checks a new password, given as `field`: length is what makes one good.
pub fn check_password(field: &str, password: &str) -> Result<(), FieldError> {
    if password.chars().count() < MIN_PASSWORD {
        let reason = format!("must have at least {MIN_PASSWORD} characters");
        return Err(FieldError::new(field, reason));
    }
    text::bounded(field, password, MAX_PASSWORD)
}

/// Whether this can be a password at all, before time is spent on hashing it.
pub fn may_be_password(given: &str) -> bool {
    text::bounded("password", given, MAX_PASSWORD).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_one_form() {
        let email = Email::parse("  Ada.Lovelace@Example.ORG ").unwrap();
        assert_eq!(email.as_str(), "ada.lovelace@example.org");
        assert_eq!(format!("{email:?}"), "Email(…)");
    }

    #[test]
    fn what_mail_cannot_reach_is_refused() {
        let long = format!("{}@example.org", "x".repeat(65));
        for wrong in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@local",
            "a b@example.org",
            "a@b@c.org",
            "a@-b.org",
            "a@b..org",
            ".a@b.org",
            "a..b@c.org",
            "a@b.org\nc",
            &long,
        ] {
            assert!(Email::parse(wrong).is_err(), "{wrong} was taken");
        }
        for right in ["a+b@example.org", "ö@exämple.de", "a_b-c@sub.example.co"] {
            assert!(Email::parse(right).is_ok(), "{right} was refused");
        }
    }

    #[test]
    fn a_password_is_long_enough_but_not_endless() {
        assert!(check_password("new", "1234567").is_err());
        assert_eq!(check_password("new", "12345678"), Ok(()));
        assert_eq!(check_password("new", "pässwörd"), Ok(()));
        assert!(check_password("new", &"x".repeat(257)).is_err());
        assert!(!may_be_password(&"x".repeat(257)));
    }

    #[test]
    fn a_phone_number_is_e164() {
        for right in ["+4915112345678", "+15005550006", "+123456789012345"] {
            assert_eq!(Phone::parse(right).unwrap().as_str(), right);
        }
        for wrong in [
            "",
            "+",
            "015112345678",
            "4915112345678",
            "+049151123456",
            "+49 151 12345678",
            "+1234567890123456",
            "+123456",
            "+49151١٢٣٤٥٦٧",
            " +4915112345678",
        ] {
            assert!(Phone::parse(wrong).is_err(), "{wrong} was taken");
        }
        let printed = format!("{:?}", Phone::parse("+4915112345678").unwrap());
        assert_eq!(printed, "Phone(…)");
    }
}
