//! `POST /auth/otp/send`: sends a one-time code to a phone number, whether an account holds it or
//! not.

use std::convert::Infallible;
use std::time::Duration;

use access::Person;
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::account::{CodeRequest, Phone};
use serde_json::json;
use service::HttpError;

use super::address::ClientAddress;
use super::codes::Issue;
use super::stored::Claim;
use super::throttle::{Daily, refused, until_tomorrow, whole_seconds};
use crate::App;
use crate::body::SmallBody;
use crate::repeatable::Repeatable;

pub(super) async fn send_code(
    State(app): State<App>,
    address: ClientAddress,
    Asking(person): Asking,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let CodeRequest { phone } = body.read(CodeRequest::parse)?;
    app.accounts.throttles().code(address.0).await?;
    let receipt = repeatable.by_client(address.0, &body).receipt;
    let (settings, codes) = (&app.accounts.settings(), &app.accounts.codes());
    match codes.issue(settings, &phone, receipt.as_ref()).await? {
        Issue::New(code) => {
            send_if_left(&app, person.as_ref(), &phone, &code).await?;
            Ok(sent(settings.code_life))
        }
        Issue::Repeat(left) => Ok(sent(left)),
        Issue::OtherRequest => Err(HttpError::conflict(
            "this Idempotency-Key was already used with another request; use a new key",
        )),
        Issue::TooMany(wait) => Err(refused(
            "too many codes were sent to this phone number; try again later",
            wait,
        )),
    }
}

/// Sends a code if one is left for the day. Each costs money, so their daily number is bounded, and
/// half of them are kept for numbers that are held.
async fn send_if_left(
    app: &App,
    person: Option<&Person>,
    phone: &Phone,
    code: &str,
) -> Result<(), HttpError> {
    let (throttles, now) = (app.accounts.throttles(), app.commands.now());
    let holder = Claim::of_phone(&app.commands, phone).await?.holder();
    // A signed-in caller learns nothing of others' numbers: only their own count as held.
    let is_held = match person {
        Some(person) => holder == Some(person.account_id),
        None => holder.is_some(),
    };
    match throttles.code_of_day(is_held, now).await {
        Daily::Left => send(app, phone, code).await,
        Daily::KeptForHolders if person.is_none() => {
            // Not reported: the response would reveal which numbers are held.
            tracing::warn!("Daily limit of one-time codes reached for numbers without an account");
            Ok(())
        }
        Daily::KeptForHolders | Daily::UsedUp => {
            withdraw(app, phone, code).await;
            let seconds = whole_seconds(until_tomorrow(now));
            let message =
                "no more codes are sent today; sign in with your password, or try again tomorrow";
            Err(HttpError::unavailable(message)
                .with_header(header::RETRY_AFTER, HeaderValue::from(seconds)))
        }
    }
}

/// The caller, if a valid token was sent. An invalid one is ignored: a code may be requested
/// without any.
pub(super) struct Asking(Option<Person>);

impl FromRequestParts<App> for Asking {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let presented = parts.headers.get(header::AUTHORIZATION);
        let presented = presented.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let person = presented.and_then(|token| app.access.authenticate_person(token).ok());
        Ok(Self(person))
    }
}

async fn send(app: &App, phone: &Phone, code: &str) -> Result<(), HttpError> {
    let accounts = &app.accounts;
    let sent = accounts
        .sender()
        .send(phone, code, app.commands.now())
        .await;
    let Err(error) = sent else {
        metrics::counter!("waypost_codes_sent_total").increment(1);
        return Ok(());
    };
    withdraw(app, phone, code).await;
    Err(HttpError::unavailable("the code could not be sent; try again later").with_cause(error))
}

async fn withdraw(app: &App, phone: &Phone, code: &str) {
    if let Err(error) = app.accounts.codes().withdraw(phone, code).await {
        tracing::warn!(%error, "A code that was not sent could not be withdrawn");
    }
}

fn sent(expires_in: Duration) -> Response {
    let seconds = whole_seconds(expires_in);
    let body = Json(json!({ "expires_in": seconds }));
    (StatusCode::ACCEPTED, body).into_response()
}
