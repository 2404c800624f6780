//! The feeds, and the socket.

use access::Scope;
use domain::webhook::pattern_of_patterns;
use serde_json::json;

use super::Part;
use super::operation::{Operation, get};
use super::shape::{answer, integer, like, meaning, nullable, refer, schema, string, time};

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
            meaning(
                json!({"type": "object"}),
                "Depends on the type, see `/asyncapi.json`.",
            ),
        ),
    ]);
    Part {
        tag: "Events",
        description: "Everything that happens in the organization, in order. People's positions \
                      have a feed of their own. `/ws` delivers the same live.",
        operations: vec![
            feed("/api/v1/events", "readEvents", "Read the events feed"),
            feed(
                "/api/v1/locations",
                "readLocations",
                "Read the locations feed",
            ),
            get("/ws", "openSocket", "Open a WebSocket")
                .says(
                    "Send the token in the first frame, as the subprotocol `bearer.<token>` next \
                     to `waypost`, or in `Authorization`. `/asyncapi.json` describes the frames.",
                )
                .answers_nothing(101, "Switching to the WebSocket protocol.")
                .refuses(&[400, 426, 503]),
        ],
        schemas: vec![("Event", event)],
    }
}

fn feed(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    let lines = json!({"x-line": schema("Event"), "schema": {"type": "string"}});
    let frames = json!({"schema": {"type": "string"}});
    let one = pattern_of_patterns();
    get(path, id, summary)
        .says(
            "NDJSON up to the present end of the log; with `Accept: text/event-stream`, \
             server-sent events that continue live, with the position as `id`. The first thing \
             sent is an `id` alone: where the feed begins, so that a client that is cut off \
             before any event resumes there. A position of the other feed is 400, one from before \
             a restore 410. The stream ends within a second after its key has been revoked or has \
             expired, and when the reader takes nothing for a minute. 429 with `Retry-After` also \
             means that the key has too many feeds open.",
        )
        .key(Scope::ReadEvents)
        .query_value(
            "after",
            "Position to continue after. Without it, NDJSON starts at the first event and \
             server-sent events start now.",
            json!({"type": "string", "minLength": 1}),
        )
        .query_value(
            "types",
            "Event types, comma-separated; `run.*` matches all types of a kind.",
            like(
                json!({"type": "string", "pattern": format!("^({one})(, ?({one}))*$")}),
                "run.*,lead.created",
            ),
        )
        .query_value(
            "limit",
            "Maximum number of events.",
            json!({"type": "integer", "minimum": 1}),
        )
        .parameter(json!({
            "name": "Last-Event-ID", "in": "header",
            "description": "For server-sent events: position to resume after. Takes precedence \
                            over `after`.",
            "schema": {"type": "string"},
        }))
        .parameter(refer("parameters", "MinPosition"))
        .answers_with(
            200,
            "Events, oldest first.",
            json!({"application/x-ndjson": lines, "text/event-stream": frames}),
        )
        .refuses(&[400, 410, 500, 503])
}
