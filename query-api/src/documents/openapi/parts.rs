//! Components shared by operations.

use serde_json::{Map, Value, json};

use super::shape::{answer, day, integer, like, meaning, sought, string, time};

pub(super) const INTRODUCTION: &str = "Three APIs over one event log: workflows and exports, \
                                       business data, and location safety.\n\n**Errors** are \
                                       always `{\"error\": \"<message>\"}`. Checks are made in \
                                       this order: 401, 429, 403, 400, 404, 409, 412.\n\n**Limits.** \
                                       Every rate-limited answer carries `RateLimit` and \
                                       `RateLimit-Policy`; a 429 says in `Retry-After` when to \
                                       retry. Every request counts whatever its answer, except \
                                       one answered 429.\n\n**Read your own writes.** A command \
                                       answers with `Waypost-Position`. Send it as \
                                       `Waypost-Min-Position` with a read, and the read waits \
                                       until it includes that command.\n\n**Retries.** POST \
                                       commands take an `Idempotency-Key`: for 24 hours, the same \
                                       key with the same body gets the first answer again, and \
                                       another body is refused.\n\n**Changes by several.** \
                                       Records and workflows are read with an `ETag`. Send it \
                                       as `If-Match` with a PUT or DELETE, and the change is \
                                       refused with 412 if somebody else was quicker. Without \
                                       it, the last one wins.\n\n**Loops.** HTTP steps and \
                                       webhooks send `Waypost-Cause`. A program that calls \
                                       Waypost in response should pass this header on, so that \
                                       workflows that trigger each other this way come to an end: \
                                       past eight hops a trigger is 409.";

pub(super) fn schemas() -> Map<String, Value> {
    let error = meaning(string(), "What went wrong, for people.");
    let error = answer(vec![("error", error)]);
    [("Error".to_owned(), error)].into_iter().collect()
}

/// The value of `If-Match`: `*`, or tags.
const TAGS: &str = r#"^(\*|(W/)?"[!#-+\--~]+"(, ?(W/)?"[!#-+\--~]+")*)$"#;

pub(super) fn parameters() -> Value {
    let moment = || json!({"anyOf": [time(), day()]});
    let query = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    let header = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "header", "description": description, "schema": schema});
    let mut limit = integer(1, 100);
    limit["default"] = 20.into();
    let page = json!({"type": "integer", "minimum": 1, "default": 1});
    let given = || json!({"type": "string", "minLength": 1});
    let key = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]*[!-~][ -~]*$"});
    json!({
        "Limit": query("limit", "Items per page.", limit),
        "Page": query(
            "page",
            "Page number, from 1. A page past the end is empty.",
            page,
        ),
        "Cursor": query(
            "cursor",
            "Cursor from the `Link` header of the previous page; replaces `page`.",
            given(),
        ),
        "Search": query(
            "q",
            "Part of a name, an e-mail address or a number, whatever its case: only what has it is \
             listed and counted.",
            sought(),
        ),
        "CreatedFrom": query(
            "createdFrom",
            "Only what was created at this time or later: RFC 3339, or a date, which is its \
             beginning in UTC.",
            moment(),
        ),
        "CreatedBefore": query(
            "createdBefore",
            "Only what was created before this time, which is not earlier than `createdFrom`.",
            moment(),
        ),
        "MinPosition": header(
            "Waypost-Min-Position",
            "`Waypost-Position` of an earlier answer: the read waits up to 5 s until it includes \
             it, then 503.",
            given(),
        ),
        "IfMatch": header(
            "If-Match",
            "The `ETag` of what you have read, with its quotation marks, or `*` for any: if \
             somebody else has changed or deleted it since, nothing is written and the answer is \
             412.",
            like(json!({"type": "string", "pattern": TAGS}), "\"2026-11-21T21:02:18.512Z\""),
        ),
        "IfNoneMatch": header(
            "If-None-Match",
            "`*`: if it exists already, nothing is written and the answer is 412.",
            json!({"type": "string", "enum": ["*"]}),
        ),
        "IfNotKnown": header(
            "If-None-Match",
            "The `ETag` of the file that you have: while it is the newest, the answer is 304.",
            like(json!({"type": "string"}), "\"6924b2f0-3c1f0a5b9d2e4871\""),
        ),
        "IfModifiedSince": header(
            "If-Modified-Since",
            "The `Last-Modified` of the file that you have, as an alternative to its `ETag`.",
            like(json!({"type": "string"}), "Sat, 21 Nov 2026 21:02:18 GMT"),
        ),
        "IdempotencyKey": header(
            "Idempotency-Key",
            "The same key with the same body gets the first answer again for 24 hours.",
            key,
        ),
    })
}

pub(super) fn headers() -> Value {
    let header = |description: &str, schema: Value, example: &str| json!({"description": description, "schema": schema, "example": example});
    json!({
        "RateLimit": header(
            "Requests left (`r`) and seconds until more are available (`t`).",
            string(),
            "\"hourly\";r=999;t=3600",
        ),
        "RateLimit-Policy": header(
            "The limit: how many requests (`q`) in how many seconds (`w`). Its name is `hourly`, \
             `minute`, `requests` or `locations`.",
            string(),
            "\"hourly\";q=1000;w=3600",
        ),
        "Retry-After": {
            "description": "Seconds after which a retry is admitted.",
            "schema": {"type": "integer", "minimum": 1},
            "example": 17,
        },
        "ETag": header(
            "The state of what was read or written, for `If-Match`: a record's `updatedAt`, a \
             workflow's `version`. An export's is for `If-None-Match`.",
            string(),
            "\"2026-11-21T21:02:18.512Z\"",
        ),
        "Waypost-Position": header(
            "Position of the command in the log, for `Waypost-Min-Position`.",
            string(),
            "e62921faf-257",
        ),
        "Link": header(
            "The address of the next page, with `rel=\"next\"`; absent on the last one.",
            string(),
            "</api/v1/orders?limit=20&cursor=…>; rel=\"next\"",
        ),
        "WWW-Authenticate": header("Authentication scheme.", string(), "Bearer"),
        "Last-Modified": header(
            "When the records last changed; absent for a moment after many changes at once.",
            string(),
            "Sat, 21 Nov 2026 21:02:18 GMT",
        ),
        "Content-Disposition": header(
            "The file's name, with the day in UTC.",
            string(),
            "attachment; filename=\"companies-2026-11-21.csv\"",
        ),
    })
}

pub(super) fn security_schemes() -> Value {
    json!({
        "apiKey": {
            "type": "http", "scheme": "bearer", "bearerFormat": "wp_…",
            "description": "An API key. An operation's `x-scope` names the scope it needs; \
                            `admin` passes every check.",
        },
        "apiKeyHeader": {
            "type": "apiKey", "in": "header", "name": "X-Api-Key",
            "description": "An API key, on the business data API.",
        },
        "accessToken": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "A person's access token, from `POST /auth/login`.",
        },
    })
}
