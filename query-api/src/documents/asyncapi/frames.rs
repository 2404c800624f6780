//! The frames of the socket, in both directions.

use serde_json::{Map, Value, json};

use super::data::PublicEvents;
use super::reference;

pub(super) const FROM_CLIENT: &[&str] = &["auth", "subscribe", "unsubscribe"];
pub(super) const FROM_SERVER: &[&str] = &[
    "ready",
    "subscribed",
    "snapshot",
    "event",
    "conflated",
    "reset",
    "error",
];

/// Adds the messages of all frames, and their shared schemas.
pub(super) fn add(
    messages: &mut Map<String, Value>,
    schemas: &mut Map<String, Value>,
    events: &PublicEvents,
) {
    let text = || json!({"type": "string"});
    let id = || {
        json!({"type": "string", "minLength": 1, "maxLength": 64,
               "description": "Subscription id, chosen by the client."})
    };
    let channel = || json!({"enum": ["locations", "places", "sos", "runs", "events"]});
    let shown = reference("schemas", "LiveEvent");
    let after = json!({
        "type": ["string", "null"],
        "description": "Position to continue after; without it, a snapshot is sent first.",
    });
    let frames = [
        (
            "auth",
            "Authenticates; sent again to renew the token.",
            json!({"token": text()}),
        ),
        (
            "subscribe",
            "Subscribes to a channel.",
            json!({"id": id(), "channel": channel(), "after": after}),
        ),
        ("unsubscribe", "Unsubscribes.", json!({"id": id()})),
        (
            "ready",
            "Authenticated; the client may subscribe.",
            json!({}),
        ),
        (
            "subscribed",
            "Events after this position follow.",
            json!({"id": id(), "position": text()}),
        ),
        (
            "snapshot",
            "Current state of the channel.",
            json!({"id": id(), "data": {"type": "array", "items": {"type": "object"}}}),
        ),
        (
            "event",
            "An event.",
            json!({"id": id(), "channel": channel(), "position": text(), "event": shown}),
        ),
        (
            "conflated",
            "The client is slow: of the positions after `from` up to `to`, only the newest of \
             each person is sent.",
            json!({"id": id(), "from": text(), "to": text()}),
        ),
        (
            "reset",
            "`after` is too old to resume from; a snapshot follows.",
            json!({"id": id()}),
        ),
        (
            "error",
            "A frame was invalid; the connection stays open.",
            json!({"id": id(), "error": text()}),
        ),
    ];
    for (name, summary, fields) in frames {
        messages.insert(format!("frame.{name}"), frame(name, summary, fields));
    }
    schemas.insert("LiveEvent".to_owned(), live_event(events));
}

fn frame(name: &str, summary: &str, fields: Value) -> Value {
    let mut properties = Map::new();
    properties.insert("type".to_owned(), json!({"const": name}));
    if let Value::Object(fields) = fields {
        properties.extend(fields);
    }
    let optional = |field: &str| field == "after" || (name == "error" && field == "id");
    let required = properties.keys().filter(|field| !optional(field));
    let required: Vec<_> = required.cloned().collect();
    json!({
        "name": name, "summary": summary,
        "payload": {"type": "object", "required": required, "properties": properties},
    })
}

/// An event within a frame.
fn live_event(events: &PublicEvents) -> Value {
    let one = |name: &&'static str| {
        json!({
            "type": "object", "required": ["type", "time", "data"],
            "properties": {
                "type": super::type_of(name),
                "time": {"type": "string", "format": "date-time"},
                "data": reference("schemas", name),
            },
        })
    };
    let types: Vec<_> = events.types.iter().map(one).collect();
    json!({"oneOf": types})
}
