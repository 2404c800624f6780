//! An organization's named secrets, which workflows read as `secrets.<NAME>`.

use url::{Host, Url};

use crate::{FieldError, text};

const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 16_384;
const MAX_HOSTS: usize = 100;

/// Checks a secret's name: it must be usable after `secrets.` in an expression.
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

/// Checks a secret's value.
pub fn check_value(value: &str) -> Result<(), FieldError> {
    if value.is_empty() {
        return Err(FieldError::new("value", "must not be empty"));
    }
    if value.contains('\0') {
        return Err(FieldError::new("value", "must not contain NUL characters"));
    }
    text::bounded("value", value, MAX_VALUE)
}

/// Checks the hosts that a secret may be sent to: names or addresses, `*.` before a name means all
/// below it. Returns them as URLs spell them.
pub fn check_hosts(hosts: &[String]) -> Result<Vec<String>, FieldError> {
    if hosts.len() > MAX_HOSTS {
        let reason = format!("must be at most {MAX_HOSTS}");
        return Err(FieldError::new("hosts", reason));
    }
    hosts.iter().map(|host| check_host(host)).collect()
}

fn check_host(given: &str) -> Result<String, FieldError> {
    let wrong = || {
        let given = text::shown(given);
        let reason = format!(
            "{given} is not a host: write crm.example or *.crm.example, without scheme, port or \
             path"
        );
        FieldError::new("hosts", reason)
    };
    let (before, name) = match given.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", given),
    };
    let spelled = Url::parse(&format!("https://{name}/")).map_err(|_| wrong())?;
    let alone = spelled.port().is_none()
        && spelled.username().is_empty()
        && spelled.password().is_none()
        && spelled.path() == "/"
        && spelled.query().is_none()
        && spelled.fragment().is_none();
    let is_name = matches!(spelled.host(), Some(Host::Domain(_)));
    match spelled.host_str() {
        Some(host)
            if alone && !name.contains(['/', ':', '@', '*']) && (is_name || before.is_empty()) =>
        {
            Ok(format!("{before}{}", host.trim_end_matches('.')))
        }
        // Only IPv6 addresses have colons.
        Some(host)
            if alone && name.starts_with('[') && name.ends_with(']') && before.is_empty() =>
        {
            Ok(host.to_owned())
        }
        _ => Err(wrong()),
    }
}

/// Whether a secret that names these hosts may be sent to a host, spelled as in a URL.
pub fn may_go_to(hosts: &[String], host: &str) -> bool {
    let host = host.trim_end_matches('.');
    hosts.is_empty()
        || hosts
            .iter()
            .any(|allowed| match allowed.strip_prefix("*.") {
                Some(parent) => host
                    .strip_suffix(parent)
                    .and_then(|below| below.strip_suffix('.'))
                    .is_some_and(|below| !below.is_empty()),
                None => host == allowed,
            })
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

    #[test]
    fn hosts_are_named_as_addresses_spell_them() {
        let hosts = |hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            check_hosts(&hosts)
        };
        assert_eq!(
            hosts(&[
                "CRM.example",
                "*.Example.org.",
                "bücher.example",
                "10.1",
                "[0:0::1]"
            ]),
            Ok([
                "crm.example",
                "*.example.org",
                "xn--bcher-kva.example",
                "10.0.0.1",
                "[::1]"
            ]
            .map(str::to_owned)
            .to_vec())
        );
        for host in [
            "",
            "*",
            "*.",
            "https://crm.example",
            "crm.example:443",
            "crm.example/x",
            "a@crm.example",
            "*.10.0.0.1",
            "a b",
            "*.*.example",
            "crm.*",
            "a?b",
            "a#b",
            "[::1]:8",
        ] {
            assert!(hosts(&[host]).is_err(), "{host} was taken");
        }
    }

    #[test]
    fn a_secret_goes_to_the_hosts_it_names_and_to_no_other() {
        let hosts = ["crm.example", "*.example.org", "10.0.0.1"].map(str::to_owned);
        for host in [
            "crm.example",
            "crm.example.",
            "a.example.org",
            "a.b.example.org",
            "10.0.0.1",
        ] {
            assert!(may_go_to(&hosts, host), "{host} was refused");
        }
        for host in [
            "evil.example",
            "x.crm.example",
            "example.org",
            ".example.org",
            "evilexample.org",
            "crm.example.evil.example",
            "10.0.0.10",
            "",
        ] {
            assert!(!may_go_to(&hosts, host), "{host} was taken");
        }
        assert!(may_go_to(&[], "anywhere.example"));
    }
}
