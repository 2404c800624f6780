//! Calls for help.

use serde_json::json;

use super::Part;
use super::operation::{Caller, Operation, post};
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
                    "When it was meant to be sent. One that arrives late alerts all the same, \
                     labelled so.",
                ),
            ),
        ],
        &[],
    );
    call["dependentRequired"] = json!({"lat": ["lng"], "lng": ["lat"]});
    Part {
        tag: "SOS",
        description: "Calls for help, which nothing limits.",
        operations: vec![
            post("/sos/trigger", "triggerSos", "Call for help")
                .by(Caller::Uncounted)
                .refuses(&[400, 401, 413, 415])
                .idempotent()
                .body(json!({
                    "required": false,
                    "content": {"application/json": {"schema": schema("Call")}},
                }))
                .answers(
                    202,
                    "All who share a circle with the caller are alerted.",
                    answer(vec![("sos_id", string()), ("audience", array(&alerted))]),
                )
                .command(),
            respond(
                "/sos/{id}/acknowledge",
                "acknowledgeSos",
                "Say that one has seen a call",
            ),
            respond(
                "/sos/{id}/resolve",
                "resolveSos",
                "Say that the danger has passed",
            ),
        ],
        schemas: vec![("Call", call)],
    }
}

fn respond(path: &'static str, id_: &'static str, summary: &'static str) -> Operation {
    let status = word(&["acknowledged", "resolved"]);
    post(path, id_, summary)
        .person()
        .path_value("id", "The call.", id())
        .idempotent()
        .answers(
            200,
            "The caller and all who were alerted learn of it.",
            answer(vec![("sos_id", string()), ("status", status)]),
        )
        .command()
        .refuses(&[404, 413])
}
