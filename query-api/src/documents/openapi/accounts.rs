//! Persons' accounts.

use serde_json::{Value, json};

use super::Part;
use super::operation::{Caller, Operation, post};
use super::shape::{
    answer, integer, like, meaning, name, nullable, schema, string, tolerant_request,
};

pub(super) fn part() -> Part {
    Part {
        tag: "Accounts",
        description: "Opening an account, signing in by password or by a code to a phone, and out.",
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
            post("/auth/register", "registerAccount", "Open an account")
                .says(
                    "409 for an address that is taken. A phone number given here is held once it \
                     was verified with this account's token.",
                )
                .takes("Registration")
                .idempotent()
                .command()
                .refuses(&[429]),
            201,
        ),
        signs_in(
            post("/auth/login", "signIn", "Sign in by password")
                .says("An unknown address and a wrong password get the same answer.")
                .takes("SignIn")
                .refuses(&[401, 429, 500, 503]),
            200,
        ),
        post("/auth/otp/send", "sendCode", "Send a one-time code")
            .says(
                "Six digits for five minutes, whether or not anybody holds the number; five an \
                 hour for a number. The token of the account that wants the number may come along.",
            )
            .takes("CodeRequest")
            .idempotent()
            .answers(
                202,
                "Sent.",
                answer(vec![(
                    "expires_in",
                    meaning(integer(1, i64::from(u32::MAX)), "In seconds."),
                )]),
            )
            .refuses(&[429, 500, 503]),
        signs_in(
            post(
                "/auth/otp/verify",
                "verifyCode",
                "Sign in by a one-time code",
            )
            .says(
                "With an access token, the number is attached to its account: the first to verify \
                 a number holds it. Without one, the account that holds the number is signed in.",
            )
            .by(Caller::Perhaps)
            .takes("Verification")
            .idempotent()
            .command()
            .refuses(&[401, 429]),
            200,
        ),
        post("/auth/logout", "signOut", "End the token")
            .person()
            .idempotent()
            .answers_nothing(204, "The token has ended.")
            .command(),
        signs_in(
            post("/auth/password", "changePassword", "Change the password")
                .says("All other tokens of the account end.")
                .person()
                .takes("PasswordChange")
                .idempotent()
                .command(),
            200,
        ),
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
