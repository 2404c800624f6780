//! The channels of messages, and their senders.

use serde_json::{Map, Value, json};

use super::frames::{FROM_CLIENT, FROM_SERVER};
use super::reference;

/// Why the server closes a socket. Clients should reconnect on codes below 3500.
const CLOSE_CODES: &[(u16, &str)] = &[
    (3000, "The process is shutting down; reconnect."),
    (3001, "The process lost the event log."),
    (3002, "The client does not read."),
    (3003, "The client does not answer pings."),
    (3004, "Rate limit exceeded."),
    (3500, "Invalid token."),
    (3501, "The token has expired or was revoked."),
    (3502, "No token was sent within 10 s."),
    (3503, "The key lacks `events:read`."),
    (3504, "A frame is too large or breaks the protocol."),
    (3505, "Too many frames, or too many invalid ones."),
];

/// A channel, with the prefix of its messages' names among the components.
struct Channel<'a> {
    name: &'static str,
    prefix: &'static str,
    messages: Vec<&'a str>,
}

impl Channel<'_> {
    fn messages(&self) -> Value {
        let one = |name: &&str| {
            let message = reference("messages", &format!("{}.{name}", self.prefix));
            ((*name).to_owned(), message)
        };
        self.messages.iter().map(one).collect::<Map<_, _>>().into()
    }

    fn described(&self, address: &Value, server: &str, description: &str) -> Value {
        json!({
            "address": address,
            "description": description,
            "servers": [{"$ref": format!("#/servers/{server}")}],
            "messages": self.messages(),
        })
    }

    /// An operation on the channel with some of its messages.
    fn operation(&self, action: &str, summary: &str, of: &[&str]) -> Value {
        let channel = self.name;
        let message =
            |name: &&str| json!({"$ref": format!("#/channels/{channel}/messages/{name}")});
        let messages: Vec<_> = of.iter().map(message).collect();
        json!({
            "action": action, "summary": summary,
            "channel": {"$ref": format!("#/channels/{channel}")},
            "messages": messages,
        })
    }
}

fn socket() -> Channel<'static> {
    Channel {
        name: "socket",
        prefix: "frame",
        messages: [FROM_CLIENT, FROM_SERVER].concat(),
    }
}

/// Webhooks get every type, the feeds their own.
fn others<'a>(types: &[&'a str]) -> [Channel<'a>; 3] {
    let is_position = |name: &&str| *name == "location.updated";
    let channel = |name, prefix, messages| Channel {
        name,
        prefix,
        messages,
    };
    let (positions, facts) = types.iter().copied().partition(is_position);
    [
        channel("webhooks", "webhook", types.to_vec()),
        channel("events", "feed", facts),
        channel("locations", "feed", positions),
    ]
}

pub(super) fn channels(types: &[&str]) -> Value {
    let mut open = socket().described(
        &"/ws".into(),
        "socket",
        "The first frame is `auth` within 10 s, or the subprotocols `waypost` and \
         `bearer.<token>` are offered; `ready` follows either way. A token in the URL is ignored. \
         After a break, resume with the position of the last event.",
    );
    let codes = CLOSE_CODES.iter();
    let codes: Map<_, _> = codes
        .map(|(code, why)| (code.to_string(), (*why).into()))
        .collect();
    open["x-close-codes"] = codes.into();
    open["bindings"] = json!({"ws": {"method": "GET", "bindingVersion": "0.1.0"}});
    let [webhooks, events, locations] = others(types);
    json!({
        "socket": open,
        "webhooks": webhooks.described(
            &Value::Null,
            "receiver",
            "A POST to the endpoint's own address, signed after Standard Webhooks. A 2xx within \
             15 s acknowledges it; anything else is retried after 5 s, 5 min, 30 min, 2 h, 5 h, \
             10 h, 14 h, 20 h and 24 h. 410 disables the endpoint, and so do five days of only \
             failures. After a rotation of the secret, `webhook-signature` contains one signature \
             per secret, the newest first. `webhook.test`, with the endpoint's `id` as data, is \
             sent only to the endpoint under test.",
        ),
        "events": events.described(
            &"/api/v1/events".into(),
            "http",
            "A GET, as NDJSON or, with `Accept: text/event-stream`, as server-sent events with \
             the position as `id`. These begin with an `id` alone: where the feed begins.",
        ),
        "locations": locations.described(
            &"/api/v1/locations".into(),
            "http",
            "The same for the positions of members of the organization's circles.",
        ),
    })
}

pub(super) fn operations(types: &[&str]) -> Value {
    let (socket, [webhooks, events, locations]) = (socket(), others(types));
    let tell =
        |channel: &Channel<'_>, summary| channel.operation("send", summary, &channel.messages);
    json!({
        "hearClient": socket.operation("receive", "Sent by the client.", FROM_CLIENT),
        "tellClient": socket.operation("send", "Sent by the server.", FROM_SERVER),
        "deliverWebhook": tell(&webhooks, "Delivers an event to an endpoint."),
        "tellEvent": tell(&events, "Delivers an event."),
        "tellPosition": tell(&locations, "Delivers a position."),
    })
}
