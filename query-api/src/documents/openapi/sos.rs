//! Calls for help.

use serde_json::{Value, json};

use super::Part;
use super::operation::{Caller, Operation, get, post};
use super::shape::{
    answer, array, id, integer, meaning, nullable, number, schema, string, text, time,
    tolerant_request, word,
};

pub(super) fn part() -> Part {
    let alerted = answer(vec![
        ("id", integer(1, (1 << 53) - 1)),
        ("name", nullable(string())),
    ]);
    let mut call = tolerant_request(
        vec![
            (
                "lat",
                meaning(nullable(number(-90.0, 90.0)), "Only with `lng`."),
            ),
            (
                "lng",
                meaning(nullable(number(-180.0, 180.0)), "Only with `lat`."),
            ),
            ("message", nullable(text(1_000))),
            (
                "recorded_at",
                meaning(
                    nullable(time()),
                    "When the alert was raised. A late one still alerts, and is marked late.",
                ),
            ),
        ],
        &[],
    );
    call["dependentRequired"] = json!({"lat": ["lng"], "lng": ["lat"]});
    Part {
        tag: "SOS",
        description: "SOS alerts. Triggering and answering one is never rate-limited.",
        operations: vec![
            get("/sos", "listOpenSos", "List open SOS alerts")
                .says(
                    "Your own, and those of people in your circles that alerted you: of the last \
                     day, newest first, at most 100, of one person at most 10. An app asks when \
                     it is opened; from then on the channel `sos` tells.",
                )
                .person()
                .read()
                .answers(200, "Open alerts.", schema("OpenCalls")),
            post("/sos/trigger", "triggerSos", "Trigger an SOS")
                .by(Caller::Uncounted)
                .refuses(&[400, 401, 413, 415])
                .idempotent()
                .body(json!({
                    "required": false,
                    "content": {"application/json": {"schema": schema("Call")}},
                }))
                .answers(
                    202,
                    "Alerts everyone who shares a circle with the caller.",
                    answer(vec![("sos_id", string()), ("audience", array(&alerted))]),
                )
                .command(),
            respond(
                "/sos/{id}/acknowledge",
                "acknowledgeSos",
                "Acknowledge an SOS",
            ),
            respond("/sos/{id}/resolve", "resolveSos", "Resolve an SOS"),
        ],
        schemas: vec![
            ("Call", call),
            ("OpenCall", open()),
            (
                "OpenCalls",
                answer(vec![("data", array(&schema("OpenCall")))]),
            ),
        ],
    }
}

fn open() -> Value {
    let flag = || json!({"type": "boolean"});
    answer(vec![
        ("sos_id", string()),
        ("user_id", integer(1, (1 << 53) - 1)),
        ("name", string()),
        ("lat", nullable(number(-90.0, 90.0))),
        ("lng", nullable(number(-180.0, 180.0))),
        ("message", nullable(string())),
        ("late", meaning(flag(), "It came long after it was raised.")),
        ("recorded_at", time()),
        ("acknowledged", meaning(flag(), "Somebody has seen it.")),
    ])
}

fn respond(path: &'static str, id_: &'static str, summary: &'static str) -> Operation {
    let status = word(&["acknowledged", "resolved"]);
    post(path, id_, summary)
        .by(Caller::Uncounted)
        .path_value("id", "The call.", id())
        .idempotent()
        .answers(
            200,
            "The caller and everyone who was alerted are notified.",
            answer(vec![("sos_id", string()), ("status", status)]),
        )
        .command()
        .refuses(&[401, 404, 413])
}
