//! `POST /auth/otp/send`: sends a one-time code to a phone number, whether an account holds it or
//! not.

use access::AccountToken;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::account::{CodeRequest, Phone};
use schemas::{AccountId, Receipt};
use serde_json::json;
use service::HttpError;

use super::address::ClientAddress;
use super::codes::Issue;
use super::stored::Claim;
use super::throttle::{Daily, refused, until_tomorrow, whole_seconds};
use crate::App;
use crate::body::SmallBody;
use crate::repeatable::Repeatable;

/// A request for a code.
struct RequestedCode {
    /// The account of the token that was sent, if one was.
    account: Option<AccountId>,
    phone: Phone,
    receipt: Option<Receipt>,
}

pub(super) async fn send_code(
    person: Option<AccountToken>,
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let CodeRequest { phone } = body.read(CodeRequest::parse)?;
    app.accounts.throttles().code(address.0).await?;
    let origin = match &person {
        Some(person) => repeatable.by_person(person, &body),
        None => repeatable.by_client(address.0, &body),
    };
    let asked = RequestedCode {
        account: person.map(|person| person.account_id),
        phone,
        receipt: origin.receipt,
    };
    // Even if no client waits for the response any more: a repeat sends nothing, so the code has to
    // be sent or withdrawn.
    tokio::spawn(issue(app, asked))
        .await
        .map_err(HttpError::internal)?
}

async fn issue(app: App, asked: RequestedCode) -> Result<Response, HttpError> {
    let (settings, codes) = (app.accounts.settings(), app.accounts.codes());
    let lasts = app.commands.receipts_last();
    let receipt = asked.receipt.as_ref().map(|receipt| (receipt, lasts));
    match codes.issue(settings, &asked.phone, receipt).await? {
        Issue::New(code) => {
            let sending = send_if_left(&app, &asked, &code).await;
            if sending.is_err() {
                withdraw(&app, &asked, &code).await;
            }
            sending.map(|()| sent(whole_seconds(settings.code_life)))
        }
        Issue::Repeat(left) if left.is_zero() => Ok(sent(0)),
        Issue::Repeat(left) => Ok(sent(whole_seconds(left))),
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
async fn send_if_left(app: &App, asked: &RequestedCode, code: &str) -> Result<(), HttpError> {
    let (throttles, now) = (app.accounts.throttles(), app.commands.now());
    let holder = Claim::of_phone(&app.commands, &asked.phone).await?.holder();
    // A signed-in caller learns nothing of others' numbers: only their own count as held.
    let is_held = match asked.account {
        Some(account) => holder == Some(account),
        None => holder.is_some(),
    };
    match throttles.code_of_day(is_held, now).await {
        Daily::Left => send(app, &asked.phone, code).await,
        Daily::KeptForHolders if asked.account.is_none() => {
            // Not reported: the response would reveal which numbers are held.
            tracing::warn!("Daily limit of one-time codes reached for numbers without an account");
            Ok(())
        }
        Daily::KeptForHolders | Daily::UsedUp => {
            let seconds = whole_seconds(until_tomorrow(now));
            let message =
                "no more codes are sent today; sign in with your password, or try again tomorrow";
            Err(HttpError::unavailable(message)
                .with_header(header::RETRY_AFTER, HeaderValue::from(seconds)))
        }
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
    Err(HttpError::unavailable("the code could not be sent; try again later").with_cause(error))
}

async fn withdraw(app: &App, asked: &RequestedCode, code: &str) {
    let codes = app.accounts.codes();
    let receipt = asked.receipt.as_ref();
    if let Err(error) = codes.withdraw(&asked.phone, code, receipt).await {
        tracing::warn!(%error, "A code that was not sent could not be withdrawn");
    }
}

fn sent(expires_in: u64) -> Response {
    let body = Json(json!({ "expires_in": expires_in }));
    (StatusCode::ACCEPTED, body).into_response()
}
