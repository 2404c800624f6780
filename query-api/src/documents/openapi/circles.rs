//! Circles and the places they watch.

use access::Scope;
use serde_json::{Value, json};

use super::Part;
use super::operation::{Operation, delete, get, post};
use super::shape::{
    answer, array, id, integer, like, list, meaning, name, nullable, number, schema, string, time,
    tolerant_request,
};
use crate::paging::BY_TIME_AND_NAME;

pub(super) fn part() -> Part {
    Part {
        tag: "Circles",
        description: "People who see each other's positions, and the places watched for them. \
                      Whoever joins an organization's circle agrees that the organization \
                      receives their positions, places and SOS until they leave.",
        operations: operations(),
        schemas: schemas(),
    }
}

fn of_circle(operation: Operation) -> Operation {
    operation
        .path_value("id", "The circle.", id())
        .refuses(&[404])
}

fn operations() -> Vec<Operation> {
    vec![
        post("/circles", "createCircle", "Create a circle")
            .person()
            .idempotent()
            .takes("CircleRequest")
            .answers(201, "The circle.", schema("NewCircle"))
            .command(),
        list_circles(),
        of_circle(post(
            "/circles/{id}/invites",
            "inviteToCircle",
            "Create an invitation code",
        ))
        .person()
        .idempotent()
        .answers(
            201,
            "The code.",
            answer(vec![("code", string()), ("expires_at", time())]),
        )
        .command()
        .refuses(&[413]),
        post("/circles/join", "joinCircle", "Join a circle with a code")
            .person()
            .idempotent()
            .takes("JoinRequest")
            .answers(200, "Joined.", answer(vec![("circle_id", string())]))
            .command()
            .refuses(&[404, 410]),
        of_circle(delete(
            "/circles/{id}/members/me",
            "leaveCircle",
            "Leave a circle",
        ))
        .person()
        .answers_nothing(204, "Left.")
        .command()
        .refuses(&[400, 409]),
        of_circle(post("/circles/{id}/places", "addPlace", "Add a place"))
            .person()
            .idempotent()
            .takes("PlaceRequest")
            .answers(201, "The place.", answer(place_fields()))
            .command(),
        of_circle(get(
            "/circles/{id}/places",
            "listPlaces",
            "List a circle's places",
        ))
        .person()
        .read()
        .answers(
            200,
            "Places.",
            answer(vec![("data", array(&schema("Place")))]),
        ),
        of_circle(delete(
            "/circles/{id}/places/{placeId}",
            "removePlace",
            "Remove a place",
        ))
        .path_value("placeId", "The place.", id())
        .person()
        .answers_nothing(204, "The place is removed.")
        .command()
        .refuses(&[400, 409]),
        post(
            "/api/v1/circles",
            "createCircleOfOrganization",
            "Create a circle of the organization",
        )
        .key(Scope::ManageCircles)
        .idempotent()
        .takes("CircleRequest")
        .answers(201, "The circle.", schema("NewCircle"))
        .command(),
        of_circle(post(
            "/api/v1/circles/{id}/invites",
            "inviteToCircleOfOrganization",
            "Create an invitation code for a circle of the organization",
        ))
        .key(Scope::ManageCircles)
        .idempotent()
        .answers(
            201,
            "The code.",
            answer(vec![("code", string()), ("expiresAt", time())]),
        )
        .command()
        .refuses(&[413]),
    ]
}

fn list_circles() -> Operation {
    get("/circles", "listCircles", "List your circles")
        .person()
        .read()
        .paged()
        .sought_and_sorted("Part of a name, whatever its case.", BY_TIME_AND_NAME)
        .answers(
            200,
            "Circles, newest first unless sorted, with their members: at most 1,000 of each, \
             and 10,000 of all circles on the page together.",
            list("Circle"),
        )
}

fn radius() -> Value {
    meaning(number(10.0, 100_000.0), "In metres.")
}

fn place_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("id", string()),
        ("name", string()),
        ("lat", number(-90.0, 90.0)),
        ("lng", number(-180.0, 180.0)),
        ("radius_m", radius()),
    ]
}

fn schemas() -> Vec<(&'static str, Value)> {
    let member = answer(vec![("id", integer(1, (1 << 53) - 1)), ("name", string())]);
    let mut place = place_fields();
    place.push(("created_at", time()));
    vec![
        (
            "CircleRequest",
            tolerant_request(vec![("name", like(name(200), "Family"))], &["name"]),
        ),
        (
            "NewCircle",
            answer(vec![("id", string()), ("name", string())]),
        ),
        (
            "Circle",
            answer(vec![
                ("id", string()),
                ("name", nullable(string())),
                (
                    "organization",
                    meaning(
                        nullable(string()),
                        "The organization that sees its members' positions, if there is one.",
                    ),
                ),
                ("members", array(&member)),
                ("created_at", time()),
            ]),
        ),
        (
            "JoinRequest",
            tolerant_request(
                vec![("code", json!({"type": "string", "pattern": r"\S"}))],
                &["code"],
            ),
        ),
        (
            "PlaceRequest",
            tolerant_request(
                vec![
                    ("name", like(name(200), "School")),
                    ("lat", number(-90.0, 90.0)),
                    ("lng", number(-180.0, 180.0)),
                    ("radius_m", radius()),
                ],
                &["name", "lat", "lng", "radius_m"],
            ),
        ),
        ("Place", answer(place)),
    ]
}
