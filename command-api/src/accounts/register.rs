//! `POST /auth/register`: opens an account.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::account::{Account, Registration};
use event_log::Binding;
use schemas::AccountId;
use service::HttpError;

use super::session::{NOT_KEPT, Session};
use super::stored::{Claim, Opening, load, new_account_id, unseal};
use crate::answer::position_header;
use crate::body::SmallBody;
use crate::commands::{Earlier, Outcome, Plan, Repeated};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, LogError, Origin};

/// Why no account was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Somebody has one under this address.
    #[error("there is an account with this e-mail address")]
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
    if let Earlier::Repeat(repeated) = commands.earlier(origin).await? {
        return again(commands, registration, repeated).await;
    }
    let password = registration.password.clone();
    let hash = commands.passwords.hash(&commands.random, password).await;
    let hash = hash.map_err(LogError::from)?;
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
    let opened = match opened.await {
        // It may be the same request's doing, between the two looks at the log.
        Err(CommandError::Refused(taken)) => match commands.earlier(origin).await? {
            Earlier::Repeat(repeated) => Outcome::Repeat(repeated),
            Earlier::None(_) => return Err(CommandError::Refused(taken)),
        },
        opened => opened?,
    };
    match opened {
        Outcome::First(done) => Ok(done),
        Outcome::Repeat(repeated) => again(commands, registration, repeated).await,
    }
}

/// A receipt says nothing of passwords, so that none can be guessed from it: a repeat shows that it
/// has the first one's.
async fn again(
    commands: &Commands,
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
    let right = commands.passwords.verify(password, hash).await;
    match account {
        Some(account) if right.map_err(LogError::from)? => Ok(Done {
            answer: account.id,
            position: repeated.position,
        }),
        _ => Err(CommandError::OtherRequest),
    }
}

/// The account that a claim names.
pub(super) async fn account_of(
    commands: &Commands,
    holder: &str,
) -> Result<Option<Account>, LogError> {
    match holder.parse() {
        Ok(id) => load(commands, AccountId(id)).await,
        Err(_) => Ok(None),
    }
}

pub(super) async fn register_account(
    State(app): State<App>,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let registration = body.read(Registration::parse)?;
    let origin = repeatable.by_anybody(told(&registration).as_bytes());
    let done = open(&app.commands, &origin, &registration).await?;
    let account = load(&app.commands, done.answer).await?;
    let session = match &account {
        Some(account) => Session::open(&app, account).await?,
        None => None,
    };
    let gone = || HttpError::conflict("the account was forgotten meanwhile");
    let session = session.ok_or_else(gone)?;
    let position = position_header(done.position);
    Ok((StatusCode::CREATED, position, NOT_KEPT, Json(session)).into_response())
}

/// What a repeat must tell as the first one did.
fn told(
    Registration {
        name, email, phone, ..
    }: &Registration,
) -> String {
    let phone = phone.as_ref().map_or("", |phone| phone.as_str());
    // Names are of one line, and so are addresses and numbers.
    format!("{name}\n{}\n{phone}", email.as_str())
}
