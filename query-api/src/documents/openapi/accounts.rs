//! Persons' accounts.

use serde_json::{Value, json};

use super::Part;
use super::operation::{Caller, Operation, get, post};
use super::shape::{
    answer, array, integer, like, meaning, name, nullable, schema, string, time, tolerant_request,
};

pub(super) fn part() -> Part {
    Part {
        tag: "Accounts",
        description: "Registration, sign-in by password or by a one-time code, and sign-out.",
        operations: operations(),
        schemas: schemas(),
    }
}

fn signs_in(operation: Operation, status: u16) -> Operation {
    operation.answers(status, "Signed in.", schema("Session"))
}

fn operations() -> Vec<Operation> {
    vec![
        signs_in(
            post("/auth/register", "registerAccount", "Register an account")
                .says(
                    "409 if the e-mail address is taken. A phone number given here belongs to the \
                     account once it has been verified with this account's token.",
                )
                .takes("Registration")
                .idempotent()
                .command()
                .refuses(&[429]),
            201,
        ),
        signs_in(
            post("/auth/login", "signIn", "Sign in by password")
                .says("An unknown address and a wrong password are answered alike.")
                .takes("SignIn")
                .idempotent()
                .refuses(&[401, 429, 500, 503]),
            200,
        ),
        post("/auth/otp/send", "sendCode", "Send a one-time code")
            .says(
                "Sends six digits that are valid for five minutes. Answers the same whether or \
                 not an account has the number. At most five codes an hour per number. Send the \
                 token of the account that the number is to be attached to, if there is one. A \
                 repeat under the same `Idempotency-Key` sends nothing, and returns how long the \
                 first code is still valid.",
            )
            .by(Caller::Perhaps)
            .takes("CodeRequest")
            .idempotent()
            .answers(
                202,
                "Sent.",
                answer(vec![(
                    "expires_in",
                    meaning(integer(0, i64::from(u32::MAX)), "In seconds."),
                )]),
            )
            .refuses(&[401, 429, 500, 503]),
        signs_in(
            post(
                "/auth/otp/verify",
                "verifyCode",
                "Sign in by a one-time code",
            )
            .says(
                "With an access token, attaches the number to that account: it belongs to whoever \
                 verifies it first. Without one, signs in to the account that has the number.",
            )
            .by(Caller::Perhaps)
            .takes("Verification")
            .idempotent()
            .command()
            .refuses(&[401, 429]),
            200,
        ),
        post("/auth/logout", "signOut", "Sign out")
            .person()
            .idempotent()
            .answers_nothing(204, "The token is revoked.")
            .command(),
        signs_in(
            post("/auth/password", "changePassword", "Change the password")
                .says("Revokes all other tokens of the account.")
                .person()
                .takes("PasswordChange")
                .idempotent()
                .command(),
            200,
        ),
        get("/auth/export", "exportAccount", "Export your data")
            .says(
                "Everything that is kept of the account, as one JSON file: the account, its \
                 circles, places, pauses, SOS, visits to places and positions. An answer that \
                 breaks off is not whole.",
            )
            .person()
            .read()
            .answers(200, "The file.", schema("AccountExport"))
            .refuses(&[503]),
        post("/auth/delete", "deleteAccount", "Delete your account")
            .says(
                "For good: all tokens end, positions and everything personal are erased, and the \
                 e-mail address and phone number become free. 401 for a wrong password, which \
                 counts as a failed sign-in.",
            )
            .person()
            .takes("AccountDeletion")
            .idempotent()
            .answers_nothing(204, "The account is deleted.")
            .command(),
    ]
}

fn phone() -> Value {
    like(
        json!({"type": "string", "pattern": r"^\+[1-9]\d{6,14}$"}),
        "+4915112345678",
    )
}

fn password() -> Value {
    json!({"type": "string", "format": "password", "minLength": 8, "maxLength": 256})
}

fn schemas() -> Vec<(&'static str, Value)> {
    let email = json!({"type": "string", "format": "email", "maxLength": 254});
    let user = answer(vec![
        ("id", integer(1, (1 << 53) - 1)),
        ("name", string()),
        ("email", string()),
    ]);
    vec![
        (
            "Session",
            answer(vec![
                ("access_token", meaning(string(), "A JSON Web Token.")),
                ("token_type", json!({"const": "bearer"})),
                (
                    "expires_in",
                    meaning(integer(1, i64::from(u32::MAX)), "In seconds."),
                ),
                ("user", user),
            ]),
        ),
        (
            "Registration",
            tolerant_request(
                vec![
                    ("name", like(name(200), "Grace Hopper")),
                    ("email", like(email, "grace@example.com")),
                    ("password", password()),
                    ("phone", nullable(phone())),
                ],
                &["name", "email", "password"],
            ),
        ),
        (
            "SignIn",
            tolerant_request(
                vec![
                    ("email", like(string(), "grace@example.com")),
                    ("password", json!({"type": "string", "format": "password"})),
                ],
                &["email", "password"],
            ),
        ),
        (
            "CodeRequest",
            tolerant_request(vec![("phone", phone())], &["phone"]),
        ),
        (
            "Verification",
            tolerant_request(
                vec![("phone", phone()), ("code", like(string(), "123456"))],
                &["phone", "code"],
            ),
        ),
        ("AccountExport", own_data()),
        (
            "AccountDeletion",
            tolerant_request(
                vec![("password", json!({"type": "string", "format": "password"}))],
                &["password"],
            ),
        ),
        (
            "PasswordChange",
            tolerant_request(
                vec![
                    ("old", json!({"type": "string", "format": "password"})),
                    ("new", password()),
                ],
                &["old", "new"],
            ),
        ),
    ]
}

/// The data kept about a person.
fn own_data() -> Value {
    let things = || array(&json!({"type": "object"}));
    let own = answer(vec![
        ("id", integer(1, (1 << 53) - 1)),
        ("name", nullable(string())),
        ("email", nullable(string())),
        ("phone", nullable(string())),
        ("named_phone", nullable(string())),
        ("tier", string()),
        ("created_at", nullable(time())),
    ]);
    answer(vec![
        ("account", own),
        (
            "organizations",
            meaning(array(&string()), "Those whose staff you belong to."),
        ),
        (
            "circles",
            meaning(things(), "Memberships, past ones included."),
        ),
        ("places", meaning(things(), "Those that you added.")),
        ("pauses", meaning(things(), "When you were hidden.")),
        (
            "sos",
            meaning(things(), "Your calls for help, and who answered them."),
        ),
        (
            "visits",
            meaning(things(), "When you entered and left places."),
        ),
        ("positions", meaning(things(), "Newest first.")),
    ])
}
