//! HTTP: a call to an address of the user's.
//!
//! An attempt that fails in transit, times out or is answered with 408, 425, 429 or 5xx is retried,
//! at the earliest when `Retry-After` says; any other status that is not accepted fails the step at
//! once, since the same request would get the same answer. All attempts carry the same
//! `Idempotency-Key`, `<run id>/<step id>`, so that a receiver can recognise a repeat.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::template::{MASK, Scrub, Secrets, Tree};
use event_log::CAUSE_HEADER;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE};
use reqwest::{Method, Response, StatusCode};
use schemas::nesting::{self, MAX_LEVELS};
use schemas::workflow::{Http, Retry};
use schemas::{OrgId, StepId, Traceparent};
use serde_json::{Map, Value, json};
use url::Url;

use super::super::program::HttpTemplates;
use super::{MAX_RECORDED, Surroundings, encoded_len, within_levels, within_size};
use crate::targets::{self, Targets};

/// How much of a response body is kept.
const MAX_BODY: usize = 256 * 1024;
/// How much of a response body an error quotes.
const QUOTED: usize = 200;
/// How many bytes of a response's headers are kept.
const MAX_HEADERS: usize = 16 * 1024;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const TRACEPARENT: &str = "traceparent";

/// A request, ready to be sent.
pub(in super::super) struct Call {
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    timeout: Duration,
    accept: Vec<u16>,
    pub(in super::super) retry: Retry,
}

impl Call {
    /// Approximate memory it holds, in bytes.
    pub(in super::super) fn bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        self.url.len() + headers + self.body.as_ref().map_or(0, Vec::len)
    }
}

/// The origin of a call, as sent in its headers.
pub(in super::super) struct Origin {
    pub(in super::super) trace: Traceparent,
    pub(in super::super) cause: String,
}

impl Origin {
    /// Replaces whatever the step has set there.
    fn put(&self, headers: &mut HeaderMap) {
        for (name, value) in [
            (TRACEPARENT, self.trace.as_str()),
            (CAUSE_HEADER, &self.cause),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}

/// The result of a call.
#[derive(Debug, PartialEq)]
pub(in super::super) enum Outcome {
    /// An accepted response.
    Succeeded(Value),
    /// Anything else.
    Failed {
        /// The reason, for people.
        error: String,
        /// Whether another attempt may succeed.
        again: bool,
        /// The earliest time that the receiver wants a retry.
        not_before: Option<DateTime<Utc>>,
    },
}

impl Outcome {
    fn failed(error: String, again: bool) -> Self {
        Self::Failed {
            error,
            again,
            not_before: None,
        }
    }
}

/// A request's parts after rendering.
struct Rendered {
    url: String,
    headers: Value,
    body: Option<Value>,
}

/// Renders a request twice: as it is sent, and as it is recorded, with secrets masked.
pub(super) fn prepare(
    step: &StepId,
    http: &Http,
    templates: &HttpTemplates,
    with: &Surroundings<'_>,
) -> Result<(Value, Call), String> {
    let shown = Arc::new(with.secrets.shown());
    let sent = render(templates, with, &Secrets::Shown(Arc::clone(&shown)))?;
    let masked = render(templates, with, &Secrets::Masked)?;
    let (host, recorded) = (host(&sent.url), host(&masked.url));
    let may_go = with.secrets.may_go_to(&host, &shown);
    // A host that comes from a secret is not shown.
    let told = if host == recorded { &host } else { MASK };
    may_go.map_err(|elsewhere| elsewhere.to(told))?;
    let mut input = json!({
        "method": http.method,
        "url": masked.url,
        "headers": masked.headers,
    });
    if let Some(body) = masked.body {
        within_levels("body", &body)?;
        input["body"] = body;
    }
    within_size("request", &input)?;
    let mut headers = headers(&sent.headers)?;
    let key = format!("{}/{step}", with.run);
    if let (false, Ok(key)) = (
        headers.contains_key(IDEMPOTENCY_KEY),
        HeaderValue::from_str(&key),
    ) {
        headers.insert(HeaderName::from_static(IDEMPOTENCY_KEY), key);
    }
    let body = sent.body.map(|body| encode(&body, &mut headers));
    let call = Call {
        method: method(&http.method)?,
        url: sent.url,
        headers,
        body,
        timeout: Duration::from_secs(http.timeout_seconds),
        accept: http.accept_status.clone(),
        retry: http.retry.clone(),
    };
    Ok((input, call))
}

fn render(
    templates: &HttpTemplates,
    with: &Surroundings<'_>,
    secrets: &Secrets,
) -> Result<Rendered, String> {
    let tree = |tree: &Tree, place: &str| {
        let rendered = tree.render(with.scope, secrets, with.meter);
        rendered.map_err(|error| error.at(place).to_string())
    };
    let url = templates.url.render(with.scope, secrets, with.meter);
    let body = templates.body.as_ref().map(|body| tree(body, "body"));
    Ok(Rendered {
        url: url.map_err(|error| error.at("url").to_string())?,
        headers: tree(&templates.headers, "headers")?,
        body: body.transpose()?,
    })
}

fn host(address: &str) -> String {
    let address = Url::parse(address).ok();
    let host = address.as_ref().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

fn method(name: &str) -> Result<Method, String> {
    Method::from_bytes(name.as_bytes()).map_err(|_| format!("method: {name} is not an HTTP method"))
}

/// The text of a value where only text is possible.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn headers(rendered: &Value) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in rendered.as_object().into_iter().flatten() {
        let wrong = || format!("headers.{name}: cannot be sent");
        let value = HeaderValue::from_str(&text(value)).map_err(|_| wrong())?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// The body as JSON; a text under a `Content-Type` of another kind is sent unchanged.
fn encode(body: &Value, headers: &mut HeaderMap) -> Vec<u8> {
    match (body, headers.get(CONTENT_TYPE)) {
        (Value::String(text), Some(kind)) if !is_json(kind) => text.clone().into_bytes(),
        (_, Some(_)) => body.to_string().into_bytes(),
        (_, None) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body.to_string().into_bytes()
        }
    }
}

fn is_json(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.to_ascii_lowercase().ends_with("+json")
}

/// Sends an organization's request and judges the response. Nothing returned contains a secret.
pub(in super::super) async fn perform(
    call: &Call,
    org: &OrgId,
    targets: &Targets,
    origin: &Origin,
    scrub: &Scrub,
    now: impl Fn() -> DateTime<Utc>,
) -> Outcome {
    let request = match targets.request(org, call.method.clone(), &call.url) {
        Ok(request) => request,
        Err(error) => return Outcome::failed(scrub.text(&error.to_string()), false),
    };
    let mut headers = call.headers.clone();
    origin.put(&mut headers);
    let mut request = request.with(|request| request.timeout(call.timeout).headers(headers));
    if let Some(body) = &call.body {
        request = request.with(|request| request.body(body.clone()));
    }
    match request.send().await {
        Ok(response) => judge(call, response, scrub, now()).await,
        Err(error) => {
            let again = !error.is_builder();
            Outcome::failed(scrub.text(&targets::reason(&error)), again)
        }
    }
}

async fn judge(call: &Call, response: Response, scrub: &Scrub, now: DateTime<Utc>) -> Outcome {
    let status = response.status();
    traces::note("http.response.status_code", i64::from(status.as_u16()));
    let headers = response.headers().clone();
    let body = match targets::read_body(response, MAX_BODY).await {
        Ok(body) => body,
        Err(error) => return Outcome::failed(scrub.text(&targets::reason(&error)), true),
    };
    if accepts(&call.accept, status) {
        return Outcome::Succeeded(output(status, &headers, &body, scrub));
    }
    Outcome::Failed {
        error: refusal(status, &body, scrub),
        again: can_pass(status),
        not_before: retry_after(&headers, now),
    }
}

/// Describes a status that is not accepted, with the beginning of the body. It is cut only after
/// secrets were removed: the beginning of one would not be recognised.
fn refusal(status: StatusCode, body: &targets::Body, scrub: &Scrub) -> String {
    let start: String = text_of(body, scrub).chars().take(QUOTED).collect();
    match start.trim() {
        "" => format!("HTTP {}", status.as_u16()),
        start => format!("HTTP {}: {start}", status.as_u16()),
    }
}

/// A body as text, without secrets.
fn text_of(body: &targets::Body, scrub: &Scrub) -> String {
    if body.truncated {
        scrub.beginning(&String::from_utf8_lossy(whole_characters(&body.bytes)))
    } else {
        scrub.text(&String::from_utf8_lossy(&body.bytes))
    }
}

/// The bytes without a character at their end that was cut off.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let is_beginning = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let last = bytes.iter().rposition(is_beginning).unwrap_or(0);
    match std::str::from_utf8(&bytes[last..]) {
        Err(error) if error.error_len().is_none() => &bytes[..last],
        _ => bytes,
    }
}

fn accepts(accept: &[u16], status: StatusCode) -> bool {
    if accept.is_empty() {
        status.is_success()
    } else {
        accept.contains(&status.as_u16())
    }
}

/// Whether a refusal is temporary.
fn can_pass(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let given = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = given.parse::<u32>() {
        return now.checked_add_signed(TimeDelta::seconds(i64::from(seconds)));
    }
    DateTime::parse_from_rfc2822(given)
        .ok()
        .map(|date| date.to_utc())
}

/// What later steps see of a response. JSON that is nested too deep to be recorded is text, like
/// JSON that is broken.
fn output(status: StatusCode, headers: &HeaderMap, body: &targets::Body, scrub: &Scrub) -> Value {
    let json = headers.get(CONTENT_TYPE).is_some_and(is_json)
        && !body.truncated
        && !nesting::is_deeper(&body.bytes, MAX_LEVELS);
    let parsed = json
        .then(|| serde_json::from_slice(&body.bytes).ok())
        .flatten();
    let read = match parsed {
        Some(parsed) => scrub.value(parsed),
        None if body.bytes.is_empty() => Value::Null,
        None => Value::from(text_of(body, scrub)),
    };
    let (kept, cut) = within_record(read);
    let mut output = json!({
        "status": status.as_u16(),
        "headers": scrub.value(Value::Object(headers_output(headers))),
        "body": kept,
    });
    if body.truncated || cut {
        output["truncated"] = Value::Bool(true);
    }
    output
}

/// Control characters and broken text grow when written as JSON: what exceeds the recorded size is
/// cut.
fn within_record(body: Value) -> (Value, bool) {
    let length = encoded_len(&body);
    if length <= 2 * MAX_RECORDED {
        return (body, false);
    }
    let text = text(&body);
    let kept = text.chars().take(MAX_RECORDED / 6).collect::<String>();
    (Value::from(kept), true)
}

/// Cookies are credentials: they are left out.
fn headers_output(headers: &HeaderMap) -> Map<String, Value> {
    let mut kept = Map::new();
    let mut room = MAX_HEADERS;
    for name in headers.keys().filter(|name| **name != SET_COOKIE) {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let value = values.join(", ");
        let Some(rest) = room.checked_sub(name.as_str().len() + value.len()) else {
            continue;
        };
        room = rest;
        kept.insert(name.as_str().to_owned(), Value::from(value));
    }
    kept
}

#[cfg(test)]
mod tests;
