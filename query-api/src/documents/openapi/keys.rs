//! API keys.

use access::Scope;
use serde_json::{Value, json};

use super::Part;
use super::operation::{delete, get, post};
use super::shape::{
    answer, array, id, integer, later, like, list, meaning, name, nullable, request, schema,
    string, time, word,
};
use crate::paging::BY_TIME_AND_NAME;

pub(super) fn part() -> Part {
    Part {
        tag: "Keys",
        description: "API keys: their scopes, limits and expiry.",
        operations: vec![
            post("/api/v1/keys", "createKey", "Create a key")
                .says(
                    "The key is shown only in this answer. A key cannot grant scopes that it \
                     lacks, a higher limit than its own, or a later expiry. The number of keys \
                     per organization is limited.",
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
                .sought_and_sorted(
                    "Part of a name or of an id, whatever its case.",
                    BY_TIME_AND_NAME,
                )
                .answers(
                    200,
                    "Keys, without their secret part, newest first unless sorted.",
                    list("Key"),
                ),
            delete("/api/v1/keys/{keyId}", "revokeKey", "Revoke a key")
                .says(
                    "It stops working on every process within a second. Keys that it created keep \
                     working unless `given=true`.",
                )
                .key(Scope::ManageKeys)
                .path_value("keyId", "The key.", id())
                .query_value(
                    "given",
                    "Also revoke the keys that this key created, and those they created; works \
                     for a key that is already revoked, too.",
                    json!({"type": "boolean", "default": false}),
                )
                .answers_nothing(204, "The key is revoked.")
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
                    "Requests in any rolling hour. Default: 1000, or the creating key's own limit \
                     if that is lower.",
                ),
            ),
            (
                "expiresAt",
                meaning(
                    nullable(later()),
                    "Expiry, in the future. Default: that of the creating key, or none.",
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
                        "Who created it: a key's id, `owner` (a person, in the dashboard) or \
                         `operator`.",
                    ),
                ),
            ]),
        ),
    ]
}
