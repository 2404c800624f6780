//! The feeds, and the socket.

use access::Scope;
use serde_json::json;

use super::Part;
use super::operation::{Operation, get};
use super::shape::{answer, integer, like, meaning, nullable, schema, string, time};

pub(super) fn part() -> Part {
    let event = answer(vec![
        ("position", string()),
        ("id", string()),
        ("type", like(string(), "run.succeeded")),
        ("version", integer(1, 65_535)),
        ("time", time()),
        ("subject", string()),
        ("correlationId", nullable(string())),
        ("causationId", nullable(string())),
        (
            "data",
            meaning(json!({"type": "object"}), "By type: see `/asyncapi.json`."),
        ),
    ]);
    Part {
        tag: "Events",
        description: "Everything that happens to the organization, in order; positions of persons \
                      have a feed of their own. `/ws` tells the same as it happens.",
        operations: vec![
            feed("/api/v1/events", "readEvents", "Read the feed of events"),
            feed(
                "/api/v1/locations",
                "readLocations",
                "Read the feed of positions",
            ),
            get("/ws", "openSocket", "Open a WebSocket")
                .says(
                    "The token comes in the first frame, as a subprotocol `bearer.<token>` beside \
                     `waypost`, or in `Authorization`. The frames stand in `/asyncapi.json`.",
                )
                .answers_nothing(101, "The connection is a WebSocket now.")
                .refuses(&[400, 426, 503]),
        ],
        schemas: vec![("Event", event)],
    }
}

fn feed(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    let lines = json!({"x-line": schema("Event"), "schema": {"type": "string"}});
    let frames = json!({"schema": {"type": "string"}});
    get(path, id, summary)
        .says(
            "Lines of JSON up to the present end; with `Accept: text/event-stream` server-sent \
             events that go on, whose `id` is the position. A position of the other feed is 400, \
             one from before a restore 410. Lines break off, and server-sent events end, within a \
             second of the key's end, and where a reader takes nothing for a minute. 429 with \
             `Retry-After` also says that the key reads as many feeds as it may at a time.",
        )
        .key(Scope::ReadEvents)
        .query_value(
            "after",
            "The position behind which to begin. Without it lines begin with the first event and \
             server-sent events now.",
            json!({"type": "string", "minLength": 1}),
        )
        .query_value(
            "types",
            "Types, with commas between; `run.*` means all of a kind.",
            like(string(), "run.*,lead.created"),
        )
        .query_value(
            "limit",
            "Events at most.",
            json!({"type": "integer", "minimum": 1}),
        )
        .parameter(json!({
            "name": "Last-Event-ID", "in": "header",
            "description": "Of server-sent events, where to go on; it goes before `after`.",
            "schema": {"type": "string"},
        }))
        .answers_with(
            200,
            "Events, oldest first.",
            json!({"application/x-ndjson": lines, "text/event-stream": frames}),
        )
        .refuses(&[400, 410, 500, 503])
}
