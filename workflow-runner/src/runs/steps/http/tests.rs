use chrono::{DateTime, TimeDelta, Utc};
use domain::template::Scrub;
use proptest::prelude::*;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use schemas::nesting::{MAX_LEVELS, levels};
use serde_json::{Value, json};

use super::super::{MAX_RECORDED, encoded_len};
use super::{QUOTED, accepts, can_pass, encode, output, refusal, retry_after};
use crate::targets::Body;

fn body(bytes: &[u8], truncated: bool) -> Body {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    Body { bytes, truncated }
}

fn kind(kind: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
    headers
}

fn read(headers: &HeaderMap, body: &Body) -> Value {
    output(StatusCode::OK, headers, body, &Scrub::default())["body"].clone()
}

#[test]
fn only_refusals_that_pass_are_tried_again() {
    let passing: Vec<u16> = (100..600)
        .filter(|status| can_pass(StatusCode::from_u16(*status).unwrap()))
        .filter(|status| *status < 500)
        .collect();
    assert_eq!(passing, [408, 425, 429]);
    assert!([500, 501, 503, 599].map(|s| can_pass(StatusCode::from_u16(s).unwrap())) == [true; 4]);
}

#[test]
fn what_is_accepted_can_be_said() {
    let status = |status| StatusCode::from_u16(status).unwrap();
    assert!(accepts(&[], status(204)) && !accepts(&[], status(302)));
    assert!(accepts(&[404], status(404)) && !accepts(&[404], status(200)));
}

#[test]
fn json_is_read_where_the_answer_says_so() {
    let json = json!({ "a": 1 });
    for of_json in [
        "application/json",
        "application/json; charset=utf-8",
        "application/problem+json",
    ] {
        assert_eq!(read(&kind(of_json), &body(b"{\"a\":1}", false)), json);
    }
    assert_eq!(
        read(&kind("text/plain"), &body(b"{\"a\":1}", false)),
        "{\"a\":1}"
    );
    assert_eq!(
        read(&kind("application/json"), &body(b"{\"a\":", false)),
        "{\"a\":"
    );
    assert_eq!(
        read(&kind("application/json"), &body(b"{\"a\":1}", true)),
        "{\"a\":1}"
    );
    assert_eq!(read(&HeaderMap::new(), &body(b"", false)), Value::Null);
    assert_eq!(read(&HeaderMap::new(), &body(&[0xff], false)), "\u{fffd}");
}

#[test]
fn json_that_is_nested_too_deep_to_be_recorded_is_text() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let json = kind("application/json");
    let kept = read(&json, &body(nested(MAX_LEVELS).as_bytes(), false));
    assert_eq!(levels(&kept), MAX_LEVELS);
    let deeper = nested(MAX_LEVELS + 1);
    assert_eq!(read(&json, &body(deeper.as_bytes(), false)), deeper);
}

#[test]
fn cookies_are_not_recorded() {
    let mut headers = kind("text/plain");
    headers.append("set-cookie", HeaderValue::from_static("session=1"));
    headers.append("x-many", HeaderValue::from_static("a"));
    headers.append("x-many", HeaderValue::from_static("b"));
    let output = output(
        StatusCode::OK,
        &headers,
        &body(b"", false),
        &Scrub::default(),
    );
    assert_eq!(
        output["headers"],
        json!({ "content-type": "text/plain", "x-many": "a, b" })
    );
}

#[test]
fn a_secret_across_the_end_of_what_an_error_quotes_is_not_recorded_in_part() {
    let scrub = Scrub::new(["s3cr3t"]);
    for before in QUOTED - 6..=QUOTED {
        let text = format!("{}s3cr3t", "x".repeat(before));
        let error = refusal(
            StatusCode::BAD_REQUEST,
            &body(text.as_bytes(), false),
            &scrub,
        );
        assert!(error.starts_with("HTTP 400: xxx"), "{error}");
        assert!(!error.contains('s'), "{error}");
    }
    let error = refusal(StatusCode::NOT_FOUND, &body(b" \n", false), &scrub);
    assert_eq!(error, "HTTP 404");
}

#[test]
fn a_secret_across_the_end_of_what_is_kept_of_a_body_is_not_recorded_in_part() {
    let scrub = Scrub::new(["s3cr\u{e9}t"]);
    let kept = |bytes: &[u8], truncated| {
        let body = body(bytes, truncated);
        output(StatusCode::OK, &HeaderMap::new(), &body, &scrub)["body"].clone()
    };
    let whole = "a token: s3cr\u{e9}t".as_bytes();
    let secret = "a token: ".len();
    for length in secret..whole.len() {
        assert_eq!(kept(&whole[..length], true), "a token: ", "{length}");
    }
    assert_eq!(kept(whole, true), "a token: ***");
    assert_eq!(kept(whole, false), "a token: ***");
    assert_eq!(kept(b"a token: s3c", false), "a token: s3c");
    let refused = refusal(
        StatusCode::BAD_REQUEST,
        &body(&whole[..secret + 3], true),
        &scrub,
    );
    assert_eq!(refused, "HTTP 400: a token:");
}

#[test]
fn a_body_is_sent_as_its_type_says() {
    let mut headers = HeaderMap::new();
    assert_eq!(encode(&json!("text"), &mut headers), b"\"text\"");
    assert_eq!(headers.get(CONTENT_TYPE).unwrap(), "application/json");
    let mut form = kind("application/x-www-form-urlencoded");
    assert_eq!(encode(&json!("a=1&b=2"), &mut form), b"a=1&b=2");
    assert_eq!(encode(&json!({ "a": 1 }), &mut form), b"{\"a\":1}");
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now: DateTime<Utc> = "2026-11-21T12:00:00Z".parse().unwrap();
    let asked = |given: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(given).unwrap());
        retry_after(&headers, now).map(|time| time - now)
    };
    assert_eq!(asked("120"), Some(TimeDelta::seconds(120)));
    assert_eq!(
        asked("Sat, 21 Nov 2026 12:01:00 GMT"),
        Some(TimeDelta::seconds(60))
    );
    assert_eq!(asked("soon"), None);
    assert_eq!(asked("-1"), None);
}

proptest! {
    #[test]
    fn what_is_recorded_has_a_bound(bytes: Vec<u8>, times in 1_usize..4_000) {
        let mut long = bytes.repeat(times);
        long.truncate(super::MAX_BODY);
        let output = output(StatusCode::OK, &HeaderMap::new(), &body(&long, false), &Scrub::default());
        prop_assert!(encoded_len(&output) < 2 * MAX_RECORDED + 1_000);
    }
}
