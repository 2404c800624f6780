//! Webhooks.

use access::Scope;
use domain::webhook::pattern_of_patterns;
use serde_json::{Value, json};

use super::Part;
use super::operation::{Operation, delete, get, patch, post};
use super::shape::{
    answer, array, id, integer, like, list, meaning, nullable, request, schema, string, text, time,
    word,
};
use crate::paging::BY_TIME;

const STATUSES: &[&str] = &["ENABLED", "DISABLED"];

pub(super) fn part() -> Part {
    Part {
        tag: "Webhooks",
        description: "Endpoints that receive events, signed after Standard Webhooks. \
                      `/asyncapi.json` describes what is sent.",
        operations: operations(),
        schemas: schemas(),
    }
}

fn one(operation: Operation) -> Operation {
    operation
        .key(Scope::ManageWebhooks)
        .path_value("id", "The endpoint.", id())
        .refuses(&[404])
}

fn operations() -> Vec<Operation> {
    vec![
        post("/api/v1/webhooks", "createWebhook", "Create an endpoint")
            .says("The secret is shown only here and when it is rotated.")
            .key(Scope::ManageWebhooks)
            .idempotent()
            .takes("WebhookRequest")
            .answers(201, "The endpoint.", schema("NewWebhook"))
            .command(),
        list_webhooks(),
        one(get(
            "/api/v1/webhooks/{id}",
            "getWebhook",
            "Read an endpoint",
        ))
        .read()
        .answers(200, "The endpoint.", schema("Webhook")),
        one(patch(
            "/api/v1/webhooks/{id}",
            "changeWebhook",
            "Update an endpoint",
        ))
        .says("Absent fields stay as they are.")
        .takes("WebhookChange")
        .answers(200, "The endpoint as it is now.", schema("ChangedWebhook"))
        .command()
        .refuses(&[409]),
        one(delete(
            "/api/v1/webhooks/{id}",
            "deleteWebhook",
            "Delete an endpoint",
        ))
        .answers_nothing(204, "The endpoint is deleted.")
        .command()
        .refuses(&[400, 409]),
        one(get(
            "/api/v1/webhooks/{id}/deliveries",
            "listDeliveries",
            "List an endpoint's deliveries",
        ))
        .read()
        .paged()
        .sought(
            "Part of an event type, whatever its case, or the whole id of an event or of a delivery.",
        )
        .answers(200, "Deliveries, newest first.", list("Delivery")),
        one(post(
            "/api/v1/webhooks/{id}/replay",
            "replayWebhook",
            "Replay deliveries",
        ))
        .says(
            "Each delivery keeps its `webhook-id`, becomes PENDING again and gets a full round of \
             attempts. `after` replays everything after a position that the endpoint subscribes \
             to, whether or not it was sent before.",
        )
        .idempotent()
        .takes("ReplayRequest")
        .answers(
            202,
            "Number of deliveries.",
            answer(vec![("replayed", integer(0, i64::from(u32::MAX)))]),
        )
        .command(),
        one(post(
            "/api/v1/webhooks/{id}/rotate-secret",
            "rotateWebhookSecret",
            "Rotate an endpoint's secret",
        ))
        .says(
            "The new secret is used at once. Deliveries are also signed with the old one for 24 \
             hours.",
        )
        .idempotent()
        .answers(200, "The new secret.", answer(vec![("secret", secret())]))
        .command()
        .refuses(&[413]),
        one(post(
            "/api/v1/webhooks/{id}/test",
            "testWebhook",
            "Test an endpoint",
        ))
        .says("Sends one `webhook.test` to this endpoint, whatever it subscribes to.")
        .idempotent()
        .answers(
            202,
            "The delivery is queued.",
            answer(vec![("deliveryId", string())]),
        )
        .command()
        .refuses(&[413]),
    ]
}

fn list_webhooks() -> Operation {
    get("/api/v1/webhooks", "listWebhooks", "List endpoints")
        .key(Scope::ManageWebhooks)
        .read()
        .paged()
        .sought_and_sorted(
            "Part of an address, a description or an id, whatever its case.",
            BY_TIME,
        )
        .answers(
            200,
            "Endpoints, newest first unless sorted.",
            list("Webhook"),
        )
}

fn secret() -> Value {
    like(string(), "whsec_…")
}

fn events() -> Value {
    let pattern = format!("^({})$", pattern_of_patterns());
    let mut events = array(&json!({"type": "string", "maxLength": 128, "pattern": pattern}));
    events["type"] = json!(["array", "null"]);
    events["minItems"] = 1.into();
    events["maxItems"] = 100.into();
    let events = like(events, json!(["run.*", "sos.triggered"]));
    meaning(
        events,
        "Events to receive: `*`, a type, or a pattern such as `run.*`. Absent means all.",
    )
}

fn url() -> Value {
    like(
        json!({"type": "string", "format": "uri", "maxLength": 2048}),
        "https://example.org/hooks",
    )
}

fn shown(status: Value) -> Vec<(&'static str, Value)> {
    vec![
        ("id", string()),
        ("url", string()),
        ("events", array(&string())),
        ("status", status),
        ("createdAt", time()),
    ]
}

/// A response with an optional description.
fn described(fields: Vec<(&'static str, Value)>) -> Value {
    let mut shape = answer(fields);
    shape["properties"]["description"] = string();
    shape
}

/// Exactly one of the fields.
fn replay() -> Value {
    let mut shape = request(
        vec![
            ("deliveryId", string()),
            ("after", meaning(string(), "A position of either feed.")),
            ("failed", json!({"const": true})),
        ],
        &[],
    );
    shape["minProperties"] = 1.into();
    shape["maxProperties"] = 1.into();
    shape
}

fn schemas() -> Vec<(&'static str, Value)> {
    let description = || nullable(text(500));
    let mut new = shown(json!({"const": "ENABLED"}));
    new.push(("secret", secret()));
    let mut stored = shown(word(STATUSES));
    stored.extend([
        ("description", nullable(string())),
        (
            "disabledReason",
            meaning(nullable(string()), "Why Waypost disabled it."),
        ),
        ("updatedAt", time()),
    ]);
    let attempt = answer(vec![
        ("at", time()),
        ("status", nullable(integer(100, 999))),
        ("durationMs", integer(0, i64::from(u32::MAX))),
        ("error", nullable(string())),
        (
            "response",
            meaning(nullable(string()), "Beginning of the answer's body."),
        ),
    ]);
    vec![
        (
            "WebhookRequest",
            request(
                vec![
                    ("url", url()),
                    ("events", events()),
                    ("description", description()),
                ],
                &["url"],
            ),
        ),
        (
            "WebhookChange",
            request(
                vec![
                    ("url", nullable(url())),
                    ("events", events()),
                    ("description", description()),
                    ("status", nullable(word(STATUSES))),
                ],
                &[],
            ),
        ),
        ("ReplayRequest", replay()),
        ("NewWebhook", described(new)),
        ("ChangedWebhook", described(shown(word(STATUSES)))),
        ("Webhook", answer(stored)),
        (
            "Delivery",
            answer(vec![
                ("id", string()),
                ("eventId", string()),
                ("type", string()),
                ("status", word(&["PENDING", "SUCCEEDED", "FAILED"])),
                ("nextAttemptAt", nullable(time())),
                (
                    "attempts",
                    meaning(array(&attempt), "The last 100, oldest first."),
                ),
                ("createdAt", time()),
            ]),
        ),
    ]
}
