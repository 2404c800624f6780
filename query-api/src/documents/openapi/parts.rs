//! What operations share.

use serde_json::{Map, Value, json};

use super::shape::{answer, integer, meaning, string};

pub(super) const INTRODUCTION: &str = "\
Three APIs over one event log: workflows and exports, business data, and location safety; and what \
belongs to them all.\n\n\
**Errors** are always `{\"error\": \"<message>\"}`. Checks come in one order: 401, 429, 403, 400, \
404, 409.\n\n\
**Limits.** Every answer under a limit says how it stands in `RateLimit` and `RateLimit-Policy`; a \
429 says in `Retry-After` when to come again. A request counts whatever its answer, but for a 429.\n\n\
**Reading what was written.** A command answers with `Waypost-Position`. A read that is given it as \
`Waypost-Min-Position` waits until it sees that command.\n\n\
**Sending again.** POST commands take an `Idempotency-Key`: for 24 hours the same key and body get \
the first answer again, another body is refused.\n\n\
**Calling because of a call.** HTTP steps and webhooks send `Waypost-Cause`. Whoever calls Waypost \
because of one passes it on, so that workflows which set each other off that way end: past eight \
hops a trigger is 409.";

pub(super) fn schemas() -> Map<String, Value> {
    let error = meaning(string(), "What went wrong, for people.");
    let error = answer(vec![("error", error)]);
    [("Error".to_owned(), error)].into_iter().collect()
}

pub(super) fn parameters() -> Value {
    let query = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    let header = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "header", "description": description, "schema": schema});
    let mut limit = integer(1, 100);
    limit["default"] = 20.into();
    let page = json!({"type": "integer", "minimum": 1, "default": 1});
    let given = || json!({"type": "string", "minLength": 1});
    let key = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]*[!-~][ -~]*$"});
    json!({
        "Limit": query("limit", "Items on a page.", limit),
        "Page": query(
            "page",
            "The page, from 1. One past the end is empty.",
            page,
        ),
        "Cursor": query(
            "cursor",
            "Where the page before ended, as its `Link` header says; in place of `page`.",
            given(),
        ),
        "MinPosition": header(
            "Waypost-Min-Position",
            "A position that a command answered with: the read waits up to 5 s until it sees it.",
            given(),
        ),
        "IdempotencyKey": header(
            "Idempotency-Key",
            "The same key and body within 24 hours get the first answer again.",
            key,
        ),
    })
}

pub(super) fn headers() -> Value {
    let header = |description: &str, schema: Value, example: &str| json!({"description": description, "schema": schema, "example": example});
    json!({
        "RateLimit": header(
            "What is left of the limit (`r`) and in how many seconds more is (`t`).",
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
            "description": "Seconds after which a try is admitted.",
            "schema": {"type": "integer", "minimum": 1},
            "example": 17,
        },
        "Waypost-Position": header(
            "Reads that wait for this position see what the command did.",
            string(),
            "e62921faf-257",
        ),
        "Link": header(
            "The address of the next page, with `rel=\"next\"`; absent on the last one.",
            string(),
            "</api/v1/orders?limit=20&cursor=…>; rel=\"next\"",
        ),
        "WWW-Authenticate": header("How to say who asks.", string(), "Bearer"),
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
            "description": "An API key. `x-scope` of an operation names the scope that it needs; \
                            `admin` passes every check.",
        },
        "apiKeyHeader": {
            "type": "apiKey", "in": "header", "name": "X-Api-Key",
            "description": "An API key, on the business data API.",
        },
        "accessToken": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "A person's access token, as `POST /auth/login` answers it.",
        },
    })
}
