//! The demo's family: four people who share a circle and move through their day while the demo
//! runs. They are clients like any other: they sign in and send positions over HTTP.

use std::time::Duration;

use command_api::accounts::{self, Tiered};
use command_api::{Commands, Origin};
use domain::account::{Email, Registration};
use futures::future::join_all;
use reqwest::{Client, Method, StatusCode};
use schemas::account::Tier;
use serde_json::{Value, json};
use service::{Clock as _, SystemClock};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::route::Route;
use crate::Failure;
use crate::commands::demo::SignIn;

/// How often a person sends a position; the tier allows 360 times an hour.
const STEP: Duration = Duration::from_secs(12);
/// How long one request may take. Passwords are hashed on threads that yield to all others, so
/// signing in takes long on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The members; the first is the organization's owner too.
pub(super) const MEMBERS: &[(&str, &str)] = &[
    ("Ada Nielsen", super::OWNER),
    ("Jonas Nielsen", "jonas@demo.example"),
    ("Mia Nielsen", "mia@demo.example"),
    ("Emil Nielsen", "emil@demo.example"),
];
/// `(name, lat, lng, radius_m)` of the places that their circle watches.
const PLACES: &[(&str, f64, f64, f64)] = &[
    ("Home", 53.5847, 10.0126, 120.0),
    ("School", 53.5790, 9.9975, 150.0),
    ("Workshop", 53.5686, 10.0301, 150.0),
];

/// Opens an account for a member.
pub(super) async fn open(
    commands: &Commands,
    origin: &Origin,
    (name, email): (&str, &str),
) -> Result<SignIn, Failure> {
    let email = Email::parse(email)?;
    let password = uuid::Uuid::new_v4().simple().to_string();
    let registration = Registration {
        name: name.to_owned(),
        email: email.clone(),
        password: password.clone(),
        phone: None,
    };
    accounts::open(commands, origin, &registration).await?;
    let tiered = Tiered {
        tier: Tier::FamilyPlus,
        requests: None,
        locations: None,
    };
    accounts::set_tier(commands, origin, &email, tiered).await?;
    Ok(SignIn {
        email: email.as_str().to_owned(),
        password,
    })
}

/// Brings the members together in a circle with its places.
pub(super) async fn gather(url: &str, members: &[SignIn]) -> Result<(), Failure> {
    let mut phones = Vec::new();
    for member in members {
        phones.push(Phone::sign_in(url, member).await?);
    }
    let Some((first, others)) = phones.split_first() else {
        return Ok(());
    };
    let circle = first
        .post("/circles", &json!({ "name": "Nielsens" }))
        .await?;
    let circle = format!("/circles/{}", circle["id"].as_str().unwrap_or_default());
    for phone in others {
        let invite = first.post(&format!("{circle}/invites"), &json!({})).await?;
        let code = json!({ "code": invite["code"] });
        phone.post("/circles/join", &code).await?;
    }
    for (name, lat, lng, radius_m) in PLACES {
        let place = json!({ "name": name, "lat": lat, "lng": lng, "radius_m": radius_m });
        first.post(&format!("{circle}/places"), &place).await?;
    }
    Ok(())
}

/// Lets everyone move until `shutdown`.
pub(super) async fn walk(url: String, members: Vec<SignIn>, shutdown: CancellationToken) {
    let walks = members
        .iter()
        .zip(Route::ALL)
        .map(|(member, route)| walk_one(&url, member, route));
    shutdown.run_until_cancelled(join_all(walks)).await;
}

async fn walk_one(url: &str, member: &SignIn, route: &Route) {
    let mut phone = None;
    let mut step = tokio::time::interval(STEP);
    step.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        step.tick().await;
        let sent = async {
            let signed_in = match phone.take() {
                Some(signed_in) => signed_in,
                None => Phone::sign_in(url, member).await?,
            };
            signed_in
                .post("/location/update", &route.fix(SystemClock.now()))
                .await?;
            Ok::<_, Failure>(signed_in)
        };
        match sent.await {
            Ok(signed_in) => phone = Some(signed_in),
            // A token that has expired, or a log that is unavailable: the next step starts over.
            Err(error) => tracing::debug!(%error, "A position of the demo was not sent"),
        }
    }
}

/// A signed-in member.
struct Phone {
    http: Client,
    url: String,
    token: String,
}

impl Phone {
    async fn sign_in(url: &str, member: &SignIn) -> Result<Self, Failure> {
        let mut phone = Self {
            http: Client::builder().no_proxy().timeout(TIMEOUT).build()?,
            url: url.to_owned(),
            token: String::new(),
        };
        let sign_in = json!({ "email": member.email, "password": member.password });
        let session = phone.post("/auth/login", &sign_in).await?;
        let token = session["access_token"].as_str().unwrap_or_default();
        token.clone_into(&mut phone.token);
        Ok(phone)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let request = self
            .http
            .request(Method::POST, format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .bearer_auth(&self.token)
            .body(body.to_string());
        let answer = request.send().await?;
        let (status, body) = (answer.status(), answer.bytes().await?);
        if status == StatusCode::NO_CONTENT {
            Ok(Value::Null)
        } else if status.is_success() {
            Ok(serde_json::from_slice(&body)?)
        } else {
            let said = String::from_utf8_lossy(&body);
            Err(format!("{path} answered {status}: {said}").into())
        }
    }
}
