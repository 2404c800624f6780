//! Positions of persons.

use serde_json::{Value, json};

use super::Part;
use super::operation::{Caller, Operation, get, post};
use super::shape::{
    answer, array, integer, later, meaning, nullable, number, schema, string, text, time,
    tolerant_request,
};

pub(super) fn part() -> Part {
    Part {
        tag: "Positions",
        description: "Sharing your position, and seeing the positions of people in your circles.",
        operations: operations(),
        schemas: schemas(),
    }
}

fn operations() -> Vec<Operation> {
    let one_or_many = json!({"oneOf": [
        schema("Fix"),
        {"type": "array", "items": schema("Fix"), "minItems": 1, "maxItems": 100},
    ]});
    let taken = answer(vec![("id", string()), ("recorded_at", time())]);
    let answered = json!({"oneOf": [taken, answer(vec![("accepted", array(&taken))])]});
    let id = integer(1, (1 << 53) - 1);
    vec![
        post("/location/update", "updateLocation", "Update your location")
            .says(
                "One position, or an array of up to 100 that is accepted as a whole or not at \
                 all. Each counts as one location update of the tier. An error in an array names \
                 the index.",
            )
            .by(Caller::Person)
            .refuses(&[401, 413, 415, 429])
            .idempotent()
            .body(json!({
                "required": true,
                "content": {"application/json": {"schema": one_or_many}},
            }))
            .answers(202, "Taken.", answered)
            .command(),
        post("/location/pause", "pauseSharing", "Pause sharing")
            .person()
            .idempotent()
            .takes("Pause")
            .answers_nothing(204, "Hidden.")
            .command(),
        post("/location/resume", "resumeSharing", "Resume sharing")
            .person()
            .idempotent()
            .answers_nothing(204, "Shown.")
            .command()
            .refuses(&[413]),
        get(
            "/location/latest",
            "readLatest",
            "Read the latest positions",
        )
        .person()
        .read()
        .answers(
            200,
            "The newest position of each person, newest first: of at most 1,000, those seen last.",
            schema("Positions"),
        ),
        get(
            "/location/history",
            "readHistory",
            "Read a person's position history",
        )
        .person()
        .query_value("user_id", "The person; yourself if absent.", id)
        .query_value("from", "Only positions from this time on.", time())
        .query_value("to", "Only positions up to this time.", time())
        .query_value(
            "limit",
            "Maximum number of positions; default 100.",
            integer(1, 1_000),
        )
        .read()
        .answers(200, "Positions, newest first.", schema("Positions"))
        .refuses(&[403]),
        get(
            "/location/trails",
            "readTrails",
            "Read the trails of the last hour",
        )
        .says(
            "Where each person that you may see went within the last hour, thinned out: at most \
             one position in 15 seconds of a person, and 12,000 in all. Somebody whom you may see \
             and who was nowhere has no positions.",
        )
        .person()
        .read()
        .answers(200, "A trail for each person.", schema("Trails")),
    ]
}

fn schemas() -> Vec<(&'static str, Value)> {
    let from_zero = || nullable(json!({"type": "number", "minimum": 0}));
    let metres = || meaning(from_zero(), "In metres.");
    let speed = || meaning(from_zero(), "In metres a second.");
    let percent = || nullable(number(0.0, 100.0));
    let seen = answer(vec![
        ("user_id", integer(1, (1 << 53) - 1)),
        ("name", string()),
        ("lat", number(-90.0, 90.0)),
        ("lng", number(-180.0, 180.0)),
        ("accuracy", metres()),
        ("speed", speed()),
        ("place_name", nullable(string())),
        ("battery", percent()),
        ("recorded_at", time()),
    ]);
    let mut fix = tolerant_request(
        vec![
            ("lat", number(-90.0, 90.0)),
            ("lng", number(-180.0, 180.0)),
            ("accuracy", metres()),
            ("speed", speed()),
            ("place_name", nullable(text(200))),
            ("battery", percent()),
            (
                "recorded_at",
                meaning(
                    nullable(time()),
                    "At most 5 minutes in the future; now if absent.",
                ),
            ),
        ],
        &["lat", "lng"],
    );
    fix["examples"] =
        json!([{"lat": 53.5511, "lng": 9.9937, "accuracy": 12, "place_name": "Harbour"}]);
    vec![
        ("Fix", fix),
        (
            "Pause",
            tolerant_request(
                vec![("until", meaning(later(), "In the future."))],
                &["until"],
            ),
        ),
        ("Position", seen),
        ("Trails", answer(vec![("data", array(&schema("Trail")))])),
        (
            "Trail",
            answer(vec![
                ("user_id", integer(1, (1 << 53) - 1)),
                ("name", string()),
                (
                    "fixes",
                    meaning(
                        array(&answer(vec![
                            ("lat", number(-90.0, 90.0)),
                            ("lng", number(-180.0, 180.0)),
                            ("recorded_at", time()),
                        ])),
                        "Oldest first.",
                    ),
                ),
            ]),
        ),
        (
            "Positions",
            answer(vec![("data", array(&schema("Position")))]),
        ),
    ]
}
