//! The description of what Waypost sends on its own, in `AsyncAPI` 3.0: the socket, webhooks and
//! feeds. Event data comes from the JSON Schemas of the event types.

mod channels;
mod data;
mod frames;

use serde_json::{Map, Value, json};

use self::data::PublicEvents;

/// The whole document.
pub(super) fn document() -> Value {
    let events = PublicEvents::gather();
    let mut messages = Map::new();
    let mut schemas = events.schemas.clone();
    frames::add(&mut messages, &mut schemas, &events);
    for name in &events.types {
        let data = reference("schemas", name);
        let example = "msg_51h7fn839p1i06i3j80b5u6ocd";
        messages.insert(
            format!("webhook.{name}"),
            json!({
                "name": name, "contentType": "application/json",
                "headers": {"type": "object", "required": [
                    "webhook-id", "webhook-timestamp", "webhook-signature",
                ], "properties": {
                    "webhook-id": {"type": "string", "examples": [example],
                        "description": "Id of the delivery, the same for all attempts."},
                    "webhook-timestamp": {"type": "string", "pattern": "^[0-9]+$",
                        "description": "Time of this attempt, in Unix seconds."},
                    "webhook-signature": {"type": "string",
                        "description": "`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; \
                                        several, separated by spaces, during a rotation."},
                    "traceparent": {"type": "string"},
                }},
                "payload": {
                    "type": "object", "required": ["type", "timestamp", "data", "position"],
                    "properties": {
                        "type": type_of(name),
                        "timestamp": {"type": "string", "format": "date-time"},
                        "data": data,
                        "position": {"type": "string"},
                    },
                },
            }),
        );
        messages.insert(
            format!("feed.{name}"),
            json!({"name": name, "contentType": "application/json", "payload": line(name, &data)}),
        );
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Waypost",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What Waypost sends: WebSocket frames, webhooks and feeds. Requests \
                            are described in `/openapi.json`.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "socket": {"host": "127.0.0.1:8080", "protocol": "ws",
                       "security": [reference("securitySchemes", "bearer")]},
            "http": {"host": "127.0.0.1:8080", "protocol": "http",
                     "security": [reference("securitySchemes", "bearer")]},
            "receiver": {"host": "{host}", "protocol": "https",
                         "variables": {"host": {"description": "The endpoint's own."}}},
        },
        "channels": channels::channels(&events.types),
        "operations": channels::operations(&events.types),
        "components": {
            "messages": messages,
            "schemas": schemas,
            "securitySchemes": {"bearer": {
                "type": "http", "scheme": "bearer",
                "description": "An API key with the scope `events:read`, or on the socket a \
                                person's access token.",
            }},
        },
    })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// Only the beginning of custom event types is known.
fn type_of(name: &str) -> Value {
    if name == data::CUSTOM {
        json!({"type": "string", "pattern": r"^custom\."})
    } else {
        json!({"const": name})
    }
}

/// An event as the feeds show it.
fn line(name: &str, data: &Value) -> Value {
    let optional = json!({"type": ["string", "null"]});
    let fields = json!({
        "position": {"type": "string"},
        "id": {"type": "string", "format": "uuid"},
        "type": type_of(name),
        "version": {"type": "integer", "minimum": 1},
        "time": {"type": "string", "format": "date-time"},
        "subject": {"type": "string"},
        "correlationId": optional,
        "causationId": optional,
        "data": data,
    });
    let required: Vec<_> = fields.as_object().into_iter().flat_map(Map::keys).collect();
    json!({"type": "object", "required": required, "properties": fields})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        for part in text.split("\"$ref\":\"#").skip(1) {
            let pointer = part.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
