//! Strangers who are there first: with addresses that an operator would invite, and with other
//! people's numbers.

use serde_json::json;

use crate::Here;
use crate::wire::{ask, is_success, learn, outcome};

/// Number of addresses that owners could have.
const OWNERS: u64 = 200;
/// The origin header of a dashboard page.
const OWN_PAGE: &str = "origin: http://waypost\r\n";
const PASSWORD: &str = "a long password";

/// Takes an address and a number, and tries what its owner could do.
pub(crate) async fn squat(mut here: Here) {
    loop {
        here.chance.pause(here.pause() * 4).await;
        let from = here.chance.below(4_000);
        let throw = here.chance.throw();
        let email = format!("owner-{}@crowd.example", throw % OWNERS);
        // One of the numbers whose codes others try to guess.
        let phone = format!("+4916{:09}", throw % 10_000);
        let body = json!({"name": "Owner", "email": email, "password": PASSWORD, "phone": phone});
        let ground = &here.ground;
        let asked = ground.json("POST", "/auth/register", "", &body.to_string());
        let (told, session) = learn(from, &asked).await;
        here.got(format!("register {told}"));
        enter(&here, from, &email).await;
        if let Some(token) = session["access_token"].as_str() {
            hold(&here, from, token, &phone).await;
        }
    }
}

/// Tries to open the pages of organizations without an invitation.
async fn enter(here: &Here, from: usize, email: &str) {
    let body = json!({"email": email, "password": PASSWORD}).to_string();
    let path = "/dashboard/sign-in";
    let asked = here.ground.json_with("POST", path, "", OWN_PAGE, &body);
    let told = outcome(&ask(from, &asked).await);
    here.got(if is_success(&told) {
        "let in as an owner".to_owned()
    } else {
        format!("enter {told}")
    });
}

/// Guesses the code of a number that it has given.
async fn hold(here: &Here, from: usize, token: &str, phone: &str) {
    for code in ["000000", "123456"] {
        let body = json!({"phone": phone, "code": code}).to_string();
        let asked = here.ground.json("POST", "/auth/otp/verify", token, &body);
        let told = outcome(&ask(from, &asked).await);
        here.got(if is_success(&told) {
            "the number of another".to_owned()
        } else {
            format!("verify {told}")
        });
    }
}
