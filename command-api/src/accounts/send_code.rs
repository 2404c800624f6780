//! `POST /auth/otp/send`: sends a one-time code to a phone number, whether anybody has said it is
//! theirs or not.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::account::{CodeRequest, Phone};
use serde_json::json;
use service::HttpError;

use super::address::ClientAddress;
use super::codes::Issue;
use crate::App;
use crate::body::SmallBody;
use crate::repeatable::Repeatable;

pub(super) async fn send_code(
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let CodeRequest { phone } = body.read(CodeRequest::parse)?;
    app.accounts.throttles().count(address.0)?;
    let receipt = repeatable.by_anybody(&body).receipt;
    let (settings, codes) = (&app.accounts.settings(), &app.accounts.codes());
    match codes.issue(settings, &phone, receipt.as_ref()).await? {
        Issue::New(code) => {
            send(&app, &phone, &code).await?;
            Ok(sent(settings.code_life))
        }
        Issue::Repeat(left) => Ok(sent(left)),
        Issue::OtherRequest => Err(HttpError::conflict(
            "this Idempotency-Key was used with another request",
        )),
        Issue::TooMany(wait) => Err(too_many(wait)),
    }
}

async fn send(app: &App, phone: &Phone, code: &str) -> Result<(), HttpError> {
    let accounts = &app.accounts;
    let sent = accounts
        .sender()
        .send(phone, code, app.commands.now())
        .await;
    let Err(error) = sent else {
        return Ok(());
    };
    if let Err(error) = accounts.codes().withdraw(phone, code).await {
        tracing::warn!(%error, "A code that could not be sent could not be taken back");
    }
    Err(HttpError::unavailable("the code could not be sent; try again later").with_cause(error))
}

fn sent(expires_in: Duration) -> Response {
    let seconds = whole_seconds(expires_in);
    let body = Json(json!({ "expires_in": seconds }));
    (StatusCode::ACCEPTED, body).into_response()
}

fn too_many(wait: Duration) -> HttpError {
    let seconds = whole_seconds(wait);
    let message =
        format!("too many codes were sent to this phone number; try again in {seconds} s");
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message)
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

/// Rounded up, and at least one.
fn whole_seconds(duration: Duration) -> u64 {
    let more = u64::from(duration.subsec_nanos() > 0);
    (duration.as_secs() + more).max(1)
}
