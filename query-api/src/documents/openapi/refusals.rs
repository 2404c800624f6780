//! Answers that say no, each in two forms: of requests that are counted against a limit, which say
//! how it stands, and of others.

use serde_json::{Map, Value, json};

use super::operation::headers;
use super::shape::refer;

const REFUSALS: &[(u16, &str, &str)] = &[
    (
        400,
        "BadRequest",
        "Something in the request is wrong; the message names the field.",
    ),
    (
        401,
        "Unauthorized",
        "No key or token came along, or it is not in force.",
    ),
    (
        403,
        "Forbidden",
        "The caller may not do this; of a key the message names the scope that it lacks.",
    ),
    (404, "NotFound", "There is no such thing for this caller."),
    (
        408,
        "TooSlow",
        "The body came too slowly; send it faster, or in smaller parts. The connection closes.",
    ),
    (
        409,
        "Conflict",
        "At odds with what is there already, or an Idempotency-Key that came with another body.",
    ),
    (410, "Gone", "What was named has ended for good."),
    (413, "TooLarge", "The body is too large."),
    (
        415,
        "WrongType",
        "The body is of a type that is not taken here.",
    ),
    (
        426,
        "UpgradeRequired",
        "The connection cannot become a WebSocket.",
    ),
    (
        429,
        "TooManyRequests",
        "The limit is used up. A try after `Retry-After` seconds is admitted if nothing else used it meanwhile.",
    ),
    (
        500,
        "Failed",
        "Nobody expected this. The answer's `traceparent` names its line in the log.",
    ),
    (
        503,
        "Unavailable",
        "Something that this needs is away, or what is read has not reached `Waypost-Min-Position`, or too much is being received at the moment. Try again later, where the answer says so after `Retry-After` seconds.",
    ),
];

/// The name of a refusal among the components.
pub(super) fn name(status: u16, counted: bool) -> String {
    let known = REFUSALS.iter().find(|(known, ..)| *known == status);
    let name = known.map_or("Failed", |(_, name, _)| name);
    let counted = if counted && says_the_limit(status) {
        "Counted"
    } else {
        ""
    };
    format!("{name}{counted}")
}

/// Who is not known has no limit.
fn says_the_limit(status: u16) -> bool {
    status != 401
}

/// All of them as components.
pub(super) fn responses() -> Value {
    let mut responses = Map::new();
    for (status, _, description) in REFUSALS {
        for counted in [false, true] {
            let own: &[&str] = match status {
                401 => &["WWW-Authenticate"],
                429 => &["Retry-After"],
                _ => &[],
            };
            let mut response = json!({
                "description": description,
                "content": {"application/json": {"schema": refer("schemas", "Error")}},
            });
            let headers = headers(own, counted && says_the_limit(*status));
            if !headers.is_empty() {
                response["headers"] = headers.into();
            }
            responses.insert(name(*status, counted), response);
        }
    }
    responses.into()
}
