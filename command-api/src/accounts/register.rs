//! `POST /auth/register`: opens an account.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::account::{Account, Registration};
use event_log::{Binding, Position};
use schemas::AccountId;
use service::HttpError;

use super::address::ClientAddress;
use super::password::Passwords;
use super::password_queue::Visitor;
use super::session::{NOT_KEPT, Session};
use super::stored::{Claim, Opening, load, new_account_id, unseal};
use super::throttle::Name;
use super::token_replay::{account_of, by_password};
use crate::answer::position_header;
use crate::body::SmallBody;
use crate::commands::{Earlier, Outcome, Plan, Repeated};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, LogError, Origin};

/// Why no account was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// An account has this address already.
    #[error("email: an account with this e-mail address already exists")]
    EmailTaken,
}

impl crate::Refusal for OpenError {
    fn into_http(self) -> HttpError {
        HttpError::conflict(self.to_string())
    }
}

/// Opens an account. A repeat with the same receipt and password finds the account that the first
/// one opened.
pub async fn open(
    commands: &Commands,
    origin: &Origin,
    registration: &Registration,
) -> Result<Done<AccountId>, CommandError<OpenError>> {
    let (passwords, operator) = (Passwords::default(), Visitor::operator());
    match open_for(commands, &passwords, origin, registration, operator).await? {
        Outcome::First(done) => Ok(done),
        Outcome::Repeat(repeated) => again(commands, &passwords, registration, repeated).await,
    }
}

async fn open_for(
    commands: &Commands,
    passwords: &Passwords,
    origin: &Origin,
    registration: &Registration,
    visitor: Visitor,
) -> Result<Outcome<AccountId>, CommandError<OpenError>> {
    if let Earlier::Repeat(repeated) = commands.earlier(origin).await? {
        return Ok(Outcome::Repeat(repeated));
    }
    // Checked before the password is hashed, which costs more than all the rest.
    let email = Claim::of_email(commands, &registration.email).await?;
    if email.holder().is_some() {
        return taken(commands, origin).await;
    }
    let password = registration.password.clone();
    let hash = passwords.hash_for(visitor, &commands.random, password);
    let hash = hash.await.map_err(LogError::from)?;
    let opening = Opening {
        id: new_account_id(commands),
        name: &registration.name,
        email: &registration.email,
        password_hash: &hash,
        phone: registration.phone.as_ref(),
    };
    let opened = commands.carry_out(origin, || async {
        let email = Claim::of_email(commands, &registration.email).await?;
        if email.holder().is_some() {
            return Err(CommandError::Refused(OpenError::EmailTaken));
        }
        Ok(Plan::Write {
            answer: opening.id,
            holder: opening.id.to_string(),
            writes: opening.writes(commands, origin, &email).await?,
        })
    });
    match opened.await {
        Err(CommandError::Refused(OpenError::EmailTaken)) => taken(commands, origin).await,
        opened => opened,
    }
}

/// The address is taken, possibly by the same request between two reads of the log.
async fn taken(
    commands: &Commands,
    origin: &Origin,
) -> Result<Outcome<AccountId>, CommandError<OpenError>> {
    match commands.earlier(origin).await? {
        Earlier::Repeat(repeated) => Ok(Outcome::Repeat(repeated)),
        Earlier::None(_) => Err(CommandError::Refused(OpenError::EmailTaken)),
    }
}

/// Answers a repeat by the operator, which has to present the first request's password.
async fn again(
    commands: &Commands,
    passwords: &Passwords,
    registration: &Registration,
    repeated: Repeated,
) -> Result<Done<AccountId>, CommandError<OpenError>> {
    let account = account_of(commands, &repeated.holder).await?;
    let hash = match &account {
        Some(account) => {
            let binding = Binding::Password(account.id);
            unseal(commands, &binding, &account.first_password_hash).await?
        }
        None => None,
    };
    let password = registration.password.clone();
    let operator = Visitor::operator();
    let right = passwords.verify_for(operator, password, hash);
    let right = right.await;
    match account {
        Some(account) if right.map_err(LogError::from)? => Ok(Done {
            answer: account.id,
            position: repeated.position,
        }),
        _ => Err(CommandError::OtherRequest),
    }
}

pub(super) async fn register_account(
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let registration = body.read(Registration::parse)?;
    let throttles = app.accounts.throttles();
    let entered = throttles.registration(address.0, &registration.email);
    let entered = entered.await?;
    let origin = repeatable.by_client(address.0, repeated_fields(&registration).as_bytes());
    let visitor = entered.visitor();
    let (commands, passwords) = (&app.commands, app.accounts.passwords());
    let opened = open_for(commands, passwords, &origin, &registration, visitor).await;
    let (entered, opened) = entered.unless_log_failed(opened).await?;
    match opened {
        Outcome::First(done) => {
            entered.succeeded().await;
            let account = load(commands, done.answer).await?;
            signed_in(&app, account.as_ref(), done.position).await
        }
        Outcome::Repeat(repeated) => {
            // A repeat is a sign-in, and counts as one.
            let name = Name::Email(&registration.email);
            let again = throttles.sign_in(address.0, name).await?;
            let account = by_password(&app, again, &repeated, registration.password).await;
            let (entered, account) = entered.unless_log_failed(account).await?;
            entered.succeeded().await;
            signed_in(&app, Some(&account), repeated.position).await
        }
    }
}

async fn signed_in(
    app: &App,
    account: Option<&Account>,
    position: Position,
) -> Result<Response, HttpError> {
    let session = match account {
        Some(account) => Session::open(app, account).await?,
        None => None,
    };
    let gone = || HttpError::conflict("the account has been deleted");
    let session = session.ok_or_else(gone)?;
    let position = position_header(position);
    Ok((StatusCode::CREATED, position, NOT_KEPT, Json(session)).into_response())
}

/// The fields that must be the same in a repeat.
fn repeated_fields(
    Registration {
        name, email, phone, ..
    }: &Registration,
) -> String {
    let phone = phone.as_ref().map_or("", |phone| phone.as_str());
    // Names, addresses and numbers are single lines.
    format!("{name}\n{}\n{phone}", email.as_str())
}
