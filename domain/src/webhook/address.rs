//! Addresses that can be called.

use url::Url;

use crate::target::{self, Ranges};

const MAX_URL: usize = 2_048;

/// Parses an address that can be called: absolute, http or https, with a host and without a
/// password (it would be readable in the log).
pub fn check_url(given: &str) -> Result<Url, String> {
    if given.chars().count() > MAX_URL {
        return Err(format!("must have at most {MAX_URL} characters"));
    }
    let url = Url::parse(given).map_err(|error| format!("is not an absolute URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if url.host().is_none() {
        return Err("must contain a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password".to_owned());
    }
    Ok(url)
}

/// Like [`check_url`], but also refuses addresses that clearly may not be called.
pub(super) fn check_target(given: &str, open: &Ranges) -> Result<(), String> {
    if given.chars().any(char::is_control) {
        // Parsers skip some of them, and the read models cannot store U+0000.
        return Err("must not contain control characters".to_owned());
    }
    let url = check_url(given)?;
    match url.host() {
        Some(host) => target::check_host(&host, open).map_err(|error| error.to_string()),
        None => Ok(()),
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
        let (none, usual) = (Ranges::default(), Ranges::usual());
        for wrong in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://localhost:9/",
        ] {
            assert!(check_target(wrong, &none).is_err(), "{wrong} was taken");
            assert_eq!(check_target(wrong, &usual), Ok(()));
        }
        assert_eq!(check_target("https://example.com/", &none), Ok(()));
        assert!(check_target("https://example.com/\0", &none).is_err());
    }

    #[test]
    fn metadata_services_stay_shut_in_every_spelling() {
        let everything: Ranges = "0.0.0.0/0,::/0".parse().unwrap();
        for wrong in [
            "http://169.254.169.254/latest",
            "http://169.254.43518/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0xA9.0xFE.0xA9.0xFE/",
            "http://0251.0376.0251.0376/",
            "http://１６９.２５４.１６９.２５４/",
            "http://169%2e254%2e169%2e254/",
            "http://169.254.169.254./",
            "http://[::ffff:169.254.169.254]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[::169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b:1::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://[2001:0:a9fe:a9fe::]/",
            "http://[2a00::5efe:a9fe:a9fe]/",
            "http://[2a00::200:5efe:a9fe:a9fe]/",
            "http://[fe80::a9fe:a9fe]/",
            "http://[fe80::1%25eth0]/",
            "http://[fe80::1%eth0]/",
            "http://[fd00:ec2::254]/",
            "http://[fd20:ce::254]/",
            "http://100.100.100.200/",
            "http://[::ffff:100.100.100.200]/",
            "http://168.63.129.16/",
            "http://0x100.1/",
        ] {
            for open in [&everything, &Ranges::usual(), &Ranges::default()] {
                assert!(check_target(wrong, open).is_err(), "{wrong} was taken");
            }
        }
    }
}
