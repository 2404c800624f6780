//! Reads an HTTP step.

use std::ops::RangeInclusive;

use indexmap::IndexMap;
use schemas::nesting;
use schemas::workflow::{Http, Retry};
use serde_json::Value;

use super::shared::check_levels;
use super::templates;
use crate::object::Object;

const METHODS: &[(&str, &str)] = &[
    ("GET", "GET"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
];

/// One attempt's timeout if the step does not specify it.
const DEFAULT_TIMEOUT_SECONDS: u64 = 15;
const TIMEOUT_SECONDS: RangeInclusive<u64> = 1..=300;
const MAX_URL: usize = 2_048;
const MAX_HEADERS: usize = 50;
const MAX_HEADER_VALUE: usize = 8_192;
const STATUSES: RangeInclusive<u64> = 100..=599;

/// A step without `retry` survives a receiver's short outage, but does not continue for long.
const DEFAULT_RETRY: Retry = Retry {
    max_attempts: 3,
    initial_seconds: 1.0,
    max_seconds: 60.0,
};
const MAX_ATTEMPTS: u64 = 100;
const DAY_SECONDS: f64 = 86_400.0;

/// Headers that the client itself must set.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn read(object: &mut Object<'_>) -> Option<Http> {
    let url = url(object);
    let headers = headers(object);
    let body = object.take("body");
    if let Some(body) = &body {
        check_levels(object, "body", nesting::levels(body));
        templates::check_within(object, "body", body);
    }
    let method = method(object, body.is_some());
    let timeout_seconds = object.integer("timeoutSeconds", TIMEOUT_SECONDS);
    let retry = retry(object);
    let accept_status = accept_status(object);
    Some(Http {
        method: method?.to_owned(),
        url: url?,
        headers: headers?,
        body,
        timeout_seconds: timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
        retry: retry?,
        accept_status: accept_status?,
    })
}

/// `GET` is the default, unless a body shows that something else was meant.
fn method(object: &mut Object<'_>, with_body: bool) -> Option<&'static str> {
    if !with_body && object.take_absent("method") {
        return Some("GET");
    }
    object.required_word("method", METHODS)
}

fn url(object: &mut Object<'_>) -> Option<String> {
    let url = object.required_string("url")?;
    if url.chars().count() > MAX_URL {
        object.error("url", format!("must have at most {MAX_URL} characters"));
        return None;
    }
    templates::check_address(object, "url", &url);
    let wrong = if crate::template::is_template(&url) {
        // The value of the braces is known only at the step; a scheme before them must be plain.
        let begins = ["http://", "https://", "{{"]
            .iter()
            .any(|start| url.starts_with(start));
        (!begins).then(|| "must begin with http:// or https://".to_owned())
    } else {
        crate::webhook::check_url(&url).err()
    };
    match wrong {
        Some(reason) => {
            object.error("url", reason);
            None
        }
        None => Some(url),
    }
}

fn headers(object: &mut Object<'_>) -> Option<IndexMap<String, String>> {
    if object.take_absent("headers") {
        return Some(IndexMap::new());
    }
    let given = object.object("headers")?;
    if given.len() > MAX_HEADERS {
        object.error(
            "headers",
            format!("must have at most {MAX_HEADERS} headers"),
        );
        return None;
    }
    let mut headers = IndexMap::with_capacity(given.len());
    for (name, value) in given {
        let place = format!("headers.{}", crate::text::shown(&name));
        if let Some(reason) = wrong_header(&name, &value) {
            object.error(&place, reason);
        } else if let Value::String(value) = value {
            templates::check(object, &place, &value);
            headers.insert(name, value);
        }
    }
    Some(headers)
}

fn wrong_header(name: &str, value: &Value) -> Option<&'static str> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > 128 || !name.bytes().all(token) {
        return Some("is not a valid header name");
    }
    if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return Some("is set by Waypost itself");
    }
    let Value::String(value) = value else {
        return Some("must be a string");
    };
    if value.len() > MAX_HEADER_VALUE {
        return Some("is too long");
    }
    value
        .chars()
        .any(|c| c.is_control() && c != '\t')
        .then_some("must not contain control characters")
}

fn retry(object: &mut Object<'_>) -> Option<Retry> {
    let Some(given) = object.take("retry") else {
        return Some(DEFAULT_RETRY);
    };
    let mut retry = Object::open(object.place_of("retry"), given, object.errors())?;
    let attempts = retry.integer("maxAttempts", 1..=MAX_ATTEMPTS);
    let initial = retry.number("initialSeconds", 0.0..=DAY_SECONDS);
    let longest = retry.number("maxSeconds", 0.0..=DAY_SECONDS);
    let initial_seconds = initial.unwrap_or(DEFAULT_RETRY.initial_seconds);
    let max_seconds = longest.unwrap_or(DEFAULT_RETRY.max_seconds.max(initial_seconds));
    if longest.is_some() && initial.is_some() && max_seconds < initial_seconds {
        retry.error("maxSeconds", "must not be less than initialSeconds");
    }
    retry.finish();
    Some(Retry {
        max_attempts: attempts
            .and_then(|attempts| u32::try_from(attempts).ok())
            .unwrap_or(DEFAULT_RETRY.max_attempts),
        initial_seconds: initial_seconds.min(max_seconds),
        max_seconds,
    })
}

fn accept_status(object: &mut Object<'_>) -> Option<Vec<u16>> {
    if object.take_absent("acceptStatus") {
        return Some(Vec::new());
    }
    let given = object.array("acceptStatus", 500)?;
    let mut statuses = Vec::with_capacity(given.len());
    for (nth, value) in given.iter().enumerate() {
        let status = value.as_u64().filter(|status| STATUSES.contains(status));
        match status.and_then(|status| u16::try_from(status).ok()) {
            Some(status) => statuses.push(status),
            None => object.error(
                &format!("acceptStatus[{nth}]"),
                "must be a whole number from 100 to 599",
            ),
        }
    }
    Some(statuses)
}
