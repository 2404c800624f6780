//! `POST /auth/login`: an access token for an e-mail address and a password.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::account::{Account, Email, SignIn};
use event_log::Binding;
use schemas::{AccountId, Log};
use service::HttpError;

use super::address::ClientAddress;
use super::password_queue::Visitor;
use super::session::{NOT_KEPT, Session};
use super::stored::{Claim, load, unseal};
use super::throttle::Name;
use super::token_replay::{Lapsed, by_password, still_good};
use crate::body::SmallBody;
use crate::commands::{Earlier, Outcome, Plan};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, LogError, Origin};

/// Looked up if there is no account, so that it takes as long.
pub(super) const NOBODY: AccountId = AccountId(0);

pub(super) async fn sign_in(
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let request = body.read(SignIn::parse)?;
    // A receipt contains nothing of passwords, so that none can be guessed from it.
    let origin = repeatable.by_client(address.0, request.email.as_bytes());
    let session = session_once(&app, address, &origin, request).await?;
    Ok((NOT_KEPT, Json(session)).into_response())
}

/// Opens a session for a client that knows an address and its password; guessing is slowed.
pub(crate) async fn session_for(
    app: &App,
    address: ClientAddress,
    request: SignIn,
) -> Result<Session, HttpError> {
    session_once(app, address, &Origin::default(), request).await
}

/// The same. A repeat has to present the password again, and counts as the attempt that it is.
async fn session_once(
    app: &App,
    address: ClientAddress,
    origin: &Origin,
    SignIn { email, password }: SignIn,
) -> Result<Session, HttpError> {
    let email = Email::parse(&email).ok();
    let name = email.as_ref().map_or(Name::NoEmail, Name::Email);
    let entered = app.accounts.throttles().sign_in(address.0, name).await?;
    // Another address under the same key may be a guess at whose key it is, so it is counted.
    let earlier = app.commands.earlier::<Lapsed>(origin).await;
    let (entered, earlier) = entered.unless_log_failed(earlier).await?;
    let account = match earlier {
        Earlier::Repeat(repeated) => by_password(app, entered, &repeated, password).await?,
        Earlier::None(_) => {
            let account = attempt(app, entered.visitor(), email.as_ref(), password).await;
            entered.settle(&account).await;
            let account = account?.ok_or_else(wrong)?;
            claim_key(app, origin, &account).await?;
            account
        }
    };
    Session::open(app, &account).await?.ok_or_else(wrong)
}

/// Claims the request's `Idempotency-Key`, if it has one, for the account that has signed in.
async fn claim_key(
    app: &App,
    origin: &Origin,
    account: &Account,
) -> Result<(), CommandError<Lapsed>> {
    let commands = &app.commands;
    let plan = || async {
        let position = commands.log().position(Log::Events, account.last_sequence);
        Ok(Plan::Nothing {
            done: Done {
                answer: (),
                position,
            },
            holder: Some(account.id.to_string()),
        })
    };
    if let Outcome::Repeat(repeated) = commands.carry_out(origin, plan).await? {
        // The same request was faster. Its answer may have lapsed while this one was waiting for
        // its turn to have the password compared.
        let still_good = still_good(app, &repeated).await?;
        still_good.ok_or(CommandError::Refused(Lapsed))?;
    }
    Ok(())
}

async fn attempt(
    app: &App,
    visitor: Visitor,
    email: Option<&Email>,
    password: String,
) -> Result<Option<Account>, LogError> {
    let (account, hash) = find(&app.commands, email).await?;
    let passwords = app.accounts.passwords();
    let right = passwords.verify_for(visitor, password, hash).await?;
    Ok(account.filter(|_| right))
}

/// The same answer for an unknown address and a wrong password.
fn wrong() -> HttpError {
    HttpError::unauthorized("wrong e-mail address or password")
}

/// The account of an address and its password's hash. The same steps are taken if there is none.
async fn find(
    commands: &Commands,
    email: Option<&Email>,
) -> Result<(Option<Account>, Option<String>), LogError> {
    let holder = match email {
        Some(email) => Claim::of_email(commands, email).await?.holder(),
        None => None,
    };
    let account = load(commands, holder.unwrap_or(NOBODY)).await?;
    let hash = match &account {
        Some(account) => {
            unseal(
                commands,
                &Binding::Password(account.id),
                &account.password_hash,
            )
            .await?
        }
        None => None,
    };
    Ok((account, hash))
}
