//! API keys.

use access::Scope;
use serde_json::{Value, json};

use super::Part;
use super::operation::{delete, get, post};
use super::shape::{
    answer, array, id, integer, later, like, list, meaning, name, nullable, request, schema,
    string, time, word,
};

pub(super) fn part() -> Part {
    Part {
        tag: "Keys",
        description: "API keys: what they may do, how often and until when.",
        operations: vec![
            post("/api/v1/keys", "createKey", "Make a key")
                .says(
                    "The key is shown here and never again. A key cannot give scopes that it \
                     lacks, a higher limit than its own or a longer life. An organization has so \
                     many keys at most.",
                )
                .key(Scope::ManageKeys)
                .idempotent()
                .takes("KeyRequest")
                .answers(201, "The key.", schema("NewKey"))
                .command()
                .refuses(&[409]),
            get("/api/v1/keys", "listKeys", "List keys")
                .key(Scope::ManageKeys)
                .read()
                .paged()
                .answers(200, "Keys, without the keys themselves.", list("Key")),
            delete("/api/v1/keys/{keyId}", "revokeKey", "Revoke a key")
                .says(
                    "It stops working within a second, on every process. What it gave goes on \
                     working unless that is to end too; a key that was revoked before gives \
                     nothing any more.",
                )
                .key(Scope::ManageKeys)
                .path_value("keyId", "The key.", id())
                .query_value(
                    "given",
                    "Whether all that the key gave ends too, and what that gave in turn; also of \
                     a key that was revoked before.",
                    json!({"type": "boolean", "default": false}),
                )
                .answers_nothing(204, "The key works no more.")
                .command()
                .refuses(&[400, 404, 409]),
        ],
        schemas: schemas(),
    }
}

fn scopes() -> Value {
    let words: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    word(&words)
}

fn schemas() -> Vec<(&'static str, Value)> {
    let mut wanted = array(&scopes());
    wanted["minItems"] = 1.into();
    wanted["maxItems"] = 100.into();
    let mut request = request(
        vec![
            ("name", like(name(200), "Our web shop")),
            ("scopes", like(wanted, json!(["workflows:trigger"]))),
            (
                "rateLimit",
                meaning(
                    nullable(integer(1, 1_000_000_000)),
                    "Requests in any hour; unless said 1000, or the giver's own where that is lower.",
                ),
            ),
            (
                "expiresAt",
                meaning(
                    nullable(later()),
                    "When it stops working, in the future; unless said with its giver, or never.",
                ),
            ),
        ],
        &["name", "scopes"],
    );
    request["examples"] = json!([{"name": "Our web shop", "scopes": ["workflows:trigger"]}]);
    vec![
        ("KeyRequest", request),
        (
            "NewKey",
            answer(vec![
                ("keyId", string()),
                (
                    "key",
                    json!({"type": "string", "pattern": "^wp_[0-9A-Za-z]{40,}$"}),
                ),
            ]),
        ),
        (
            "Key",
            answer(vec![
                ("keyId", string()),
                ("name", string()),
                ("scopes", array(&string())),
                ("rateLimit", integer(1, 1_000_000_000)),
                ("expiresAt", nullable(time())),
                ("createdAt", time()),
                ("lastUsedAt", nullable(time())),
                (
                    "createdBy",
                    meaning(
                        string(),
                        "Who gave it: a key's id, `owner` (a person, by hand) or `operator`.",
                    ),
                ),
            ]),
        ),
    ]
}
