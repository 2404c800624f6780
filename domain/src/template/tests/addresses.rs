//! Values in addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use schemas::RunId;
use serde_json::{Value, json};
use url::Url;

use super::super::{Address, Scope, Scrub, Secrets, Shown};
use super::{fields, meter};

fn rendered(source: &str, trigger: Value) -> Result<String, String> {
    let scope = Scope::new(&RunId::from("r"), &fields(trigger), &Arc::default(), []);
    let secrets = BTreeMap::from([
        ("CRM".to_owned(), "https://crm.example/api".to_owned()),
        ("TOKEN".to_owned(), "a/b?c".to_owned()),
    ]);
    let secrets = Secrets::Shown(Arc::new(Shown::new(Arc::new(secrets))));
    let address = Address::parse(source).map_err(|error| error.to_string())?;
    let address = address.render(&scope, &secrets, &meter());
    address.map_err(|error| error.to_string())
}

#[test]
fn a_value_stays_within_its_place() {
    let hostile = "../admin?x=1&y=2#z@evil.example\\\n";
    let encoded = "..%2Fadmin%3Fx%3D1%26y%3D2%23z%40evil.example%5C%0A";
    for (source, expected) in [
        (
            "https://crm.example/leads/{{ trigger.v }}",
            "https://crm.example/leads/V",
        ),
        (
            "https://crm.example/{{ trigger.v }}/x?q={{ trigger.v }}#{{ trigger.v }}",
            "https://crm.example/V/x?q=V#V",
        ),
        (
            "https://crm.example?{{ trigger.v }}",
            "https://crm.example?V",
        ),
        (
            "{{ 'https://crm.example/leads/' ~ trigger.v }}",
            "https://crm.example/leads/V",
        ),
        (
            "{{ 'https://crm.example/a/' if trigger.n else 'https://crm.example/b/' }}{{ trigger.v }}",
            "https://crm.example/a/V",
        ),
        (
            "{{ ('https://crm.example/a/' ~ trigger.v) if trigger.n else trigger.base }}",
            "https://crm.example/a/V",
        ),
        (
            "https://crm.example/{{ 'leads/new' if trigger.n else trigger.v }}",
            "https://crm.example/leads/new",
        ),
        (
            "{{ trigger.base }}/leads/{{ trigger.v }}",
            "https://crm.example/api/leads/V",
        ),
        (
            "{{ secrets.CRM }}/leads/{{ trigger.v }}",
            "https://crm.example/api/leads/V",
        ),
        ("{{ trigger.base }}", "https://crm.example/api"),
        ("https://{{ trigger.host }}/x", "https://crm.example:8443/x"),
        (
            "{{ trigger.scheme }}://crm.example/{{ trigger.v }}",
            "https://crm.example/V",
        ),
        (
            "https://x.example/{{ trigger.n }}/{{ trigger.l }}",
            "https://x.example/7/%5B1%2C%22%2F%22%5D",
        ),
        (
            "https://x.example/?key={{ secrets.TOKEN }}",
            "https://x.example/?key=a%2Fb%3Fc",
        ),
        // A value encoded by hand is not encoded twice, and may be several parts of a path.
        (
            "https://x.example/{{ trigger.path|urlencode }}",
            "https://x.example/a/b%20c",
        ),
    ] {
        let trigger = json!({"v": hostile, "n": 7, "l": [1, "/"], "path": "a/b c", "scheme": "https",
            "base": "https://crm.example/api", "host": "crm.example:8443"});
        let expected = expected.replace('V', encoded);
        assert_eq!(rendered(source, trigger), Ok(expected), "{source}");
    }
}

#[test]
fn a_value_cannot_climb_or_choose_the_host() {
    for (source, value) in [
        ("https://crm.example/leads/{{ trigger.v }}", ".."),
        ("https://crm.example/leads/{{ trigger.v }}/x", "."),
        (
            "https://crm.example/leads/{{ trigger.v }}{{ trigger.v }}",
            ".",
        ),
        ("https://crm.example/leads/.{{ trigger.v }}?q", "."),
        (
            "https://crm.example/leads/{{ trigger.v|urlencode }}",
            "a/../../admin",
        ),
        ("https://{{ trigger.v }}.crm.example/", "evil.example/"),
        ("https://{{ trigger.v }}.crm.example/", "user@evil.example#"),
        ("https://crm.example{{ trigger.v }}/", "@evil.example"),
        ("{{ trigger.v }}://crm.example/", "https://evil.example/"),
    ] {
        let refused = rendered(source, json!({ "v": value }));
        assert!(refused.is_err(), "{source}: {refused:?}");
    }
    // Dots are harmless where they are only a part of a name, or after the path.
    for source in [
        "https://crm.example/file.{{ trigger.v }}",
        "https://crm.example/x?up={{ trigger.v }}",
    ] {
        assert!(rendered(source, json!({ "v": ".." })).is_ok(), "{source}");
    }
}

#[test]
fn a_secret_is_recognised_as_it_is_encoded_in_an_address() {
    let secret = "k/9 (x)!";
    let trigger = fields(json!({ "v": secret }));
    let scope = Scope::new(&RunId::from("r"), &trigger, &Arc::default(), []);
    let address = Address::parse("https://x.example/{{ trigger.v }}").unwrap();
    let address = address.render(&scope, &Secrets::Masked, &meter()).unwrap();
    assert_eq!(Scrub::new([secret]).text(&address), "https://x.example/***");
    let masked = Address::parse("https://x.example/{{ secrets.A }}").unwrap();
    let masked = masked.render(&scope, &Secrets::Masked, &meter()).unwrap();
    assert_eq!(masked, "https://x.example/***");
}

proptest! {
    #[test]
    fn no_value_changes_the_shape_of_an_address(value in any::<String>()) {
        let source = "https://crm.example:8443/leads/{{ trigger.v }}/notes?a={{ trigger.v }}&b=1";
        let trigger = json!({ "v": value });
        // An address that would climb is refused instead.
        if let Ok(address) = rendered(source, trigger) {
            let url = Url::parse(&address).unwrap();
            prop_assert_eq!(url.host_str(), Some("crm.example"));
            prop_assert_eq!(url.port(), Some(8443));
            prop_assert_eq!(url.username(), "");
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 3);
            prop_assert_eq!((segments[0], segments[2]), ("leads", "notes"));
            let pairs: Vec<_> = url.query_pairs().collect();
            prop_assert_eq!(pairs.len(), 2);
            prop_assert_eq!(&pairs[0].1, &value);
            prop_assert!(url.fragment().is_none());
        } else {
            prop_assert!(value == "." || value == "..");
        }
    }
}
