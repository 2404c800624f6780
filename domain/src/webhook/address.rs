//! Addresses that can be called.

use url::Url;

use crate::target;

const MAX_URL: usize = 2_048;

/// Reads an address that can be called: absolute, http or https, with a host and without a
/// password (it would stand readable in the log).
pub fn check_url(given: &str) -> Result<Url, String> {
    if given.chars().count() > MAX_URL {
        return Err(format!("must have at most {MAX_URL} characters"));
    }
    let url = Url::parse(given).map_err(|error| format!("is not an absolute address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if url.host().is_none() {
        return Err("must name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password".to_owned());
    }
    Ok(url)
}

/// As [`check_url`], and refuses what is plainly no public address.
pub(super) fn check_public_url(given: &str, private_allowed: bool) -> Result<(), String> {
    let url = check_url(given)?;
    match url.host() {
        Some(host) if !private_allowed => {
            target::check_host(&host).map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_can_be_called_are_taken() {
        for right in ["https://example.com/hook?x=1", "http://example.com:8080"] {
            assert!(check_url(right).is_ok(), "{right} was refused");
        }
        let long = format!("https://example.com/{}", "x".repeat(2_048));
        for wrong in [
            "",
            "example.com",
            "/hook",
            "ftp://example.com",
            "file:///etc/passwd",
            "javascript:1",
            "https://",
            "https://user:secret@example.com",
            "https://user@example.com",
            &long,
        ] {
            assert!(check_url(wrong).is_err(), "{wrong} was taken");
        }
    }

    #[test]
    fn private_literals_are_refused_in_every_spelling() {
        for wrong in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://localhost:9/",
            "http://169.254.169.254/latest",
        ] {
            assert!(check_public_url(wrong, false).is_err(), "{wrong} was taken");
            assert_eq!(check_public_url(wrong, true), Ok(()));
        }
        assert_eq!(check_public_url("https://example.com/", false), Ok(()));
    }
}
