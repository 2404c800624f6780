//! An organization's named secrets, which workflows read as `secrets.<NAME>`.

use crate::{FieldError, text};

const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 16_384;

/// Judges a secret's name: what can stand behind `secrets.` in an expression.
pub fn check_name(name: &str) -> Result<(), FieldError> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if begins && name.len() <= MAX_NAME && name.bytes().all(plain) {
        return Ok(());
    }
    let reason =
        format!("must be 1 to {MAX_NAME} letters, digits or _, and must not begin with a digit");
    Err(FieldError::new("name", reason))
}

/// Judges a secret's value.
pub fn check_value(value: &str) -> Result<(), FieldError> {
    if value.is_empty() {
        return Err(FieldError::new("value", "must not be empty"));
    }
    if value.contains('\0') {
        return Err(FieldError::new("value", "must not have NUL characters"));
    }
    text::bounded("value", value, MAX_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_fit_an_expression() {
        for name in ["CRM_TOKEN", "_x", "a1"] {
            assert_eq!(check_name(name), Ok(()));
        }
        for name in ["", "1A", "a-b", "a.b", "ä", &"X".repeat(65)] {
            assert!(check_name(name).is_err(), "{name} was taken");
        }
    }

    #[test]
    fn an_empty_value_is_no_secret() {
        assert!(check_value("").is_err());
        assert!(check_value("a\0b").is_err());
        assert_eq!(check_value("s3cret"), Ok(()));
    }
}
