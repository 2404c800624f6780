//! `POST /auth/otp/verify`: signs in the holder of a phone number, or attaches it to the account
//! whose token is sent.

use access::{AccountToken, Person};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::account::{Account, Phone, Verification};
use event_log::{Binding, Expected, Position, Write};
use schemas::account::PhoneVerified;
use schemas::{Event, StreamId};
use service::HttpError;

use super::address::ClientAddress;
use super::codes::Trial;
use super::login::NOBODY;
use super::session::{NOT_KEPT, Session};
use super::stored::{self, Claim, load};
use super::throttle::{Name, Try};
use super::token_replay::{Lapsed, still_good};
use crate::answer::position_header;
use crate::body::SmallBody;
use crate::commands::{Earlier, Repeated, until_written};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, LogError, Origin, Refusal as _};

/// Why the sign-in failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    /// One message for all cases: a number's holder is nobody else's business.
    #[error(
        "the code is wrong or has expired, or no account has this phone number; to attach the \
         number to an account, send its access token"
    )]
    Wrong,
    /// Reported only to somebody who has the phone in hand.
    #[error("phone: another account has this phone number")]
    HeldByAnother,
    #[error("the account no longer exists")]
    Gone,
}

impl crate::Refusal for Refusal {
    fn into_http(self) -> HttpError {
        match self {
            Self::Wrong | Self::Gone => HttpError::unauthorized(self.to_string()),
            Self::HeldByAnother => HttpError::conflict(self.to_string()),
        }
    }
}

pub(super) async fn verify_code(
    person: Option<AccountToken>,
    State(app): State<App>,
    address: ClientAddress,
    repeatable: Repeatable,
    body: SmallBody,
) -> Result<Response, HttpError> {
    let verification = body.read(Verification::parse)?;
    let origin = match &person {
        Some(person) => repeatable.by_person(person, &body),
        None => repeatable.by_client(address.0, &body),
    };
    let phone = &verification.phone;
    // Before anything is compared, so that a repeat is no cheaper than a first try.
    let entered = app
        .accounts
        .throttles()
        .sign_in(address.0, Name::Phone(phone));
    let entered = entered.await?;
    match app.commands.earlier::<Refusal>(&origin).await {
        Ok(Earlier::Repeat(repeated)) => return again(&app, entered, &origin, &repeated).await,
        Ok(Earlier::None(_)) => {}
        Err(CommandError::OtherRequest) => return Err(other_request(&app, &entered, &origin).await),
        Err(error) => {
            entered.forgive().await;
            return Err(error.into());
        }
    }
    let account = attempt(&app, &origin, person.as_deref(), &verification).await;
    entered.settle(&account).await;
    let account = account?.ok_or_else(|| Refusal::Wrong.into_http())?;
    let attached = attach(&app.commands, &origin, account, phone).await?;
    signed_in(&app, &attached.account, attached.position).await
}

/// The account that a right code signs in.
async fn attempt(
    app: &App,
    origin: &Origin,
    person: Option<&Person>,
    Verification { phone, code }: &Verification,
) -> Result<Option<Account>, HttpError> {
    // Looked up before the code is used up: a code that signs in nobody stays good for a token.
    let account = match person {
        Some(person) => load(&app.commands, person.account_id).await?,
        None => whose(app, phone).await?,
    };
    let of_use = account.is_some();
    let (codes, receipt) = (app.accounts.codes(), origin.receipt.as_ref());
    let trial = codes.try_code(phone, code, of_use, receipt).await?;
    Ok(account.filter(|_| trial == Trial::Right))
}

/// Answers a repeat. A used code guards it as well as it guarded the first request: other codes
/// sent under the key end both after as many attempts.
async fn again(
    app: &App,
    entered: Try<'_>,
    origin: &Origin,
    repeated: &Repeated,
) -> Result<Response, HttpError> {
    let compared = compare(app, &entered, origin).await?;
    let account = match still_good(app, repeated).await {
        Ok(account) => account,
        Err(error) => {
            if let Some(compared) = compared {
                compared.forgive().await;
            }
            entered.forgive().await;
            return Err(error.into());
        }
    };
    let account = account.ok_or_else(|| Lapsed.into_http())?;
    if let Some(compared) = compared {
        compared.succeeded().await;
    }
    entered.succeeded().await;
    signed_in(app, &account, Some(repeated.position)).await
}

/// Another code under the same key: it may be a wrong guess, so it is counted.
async fn other_request(app: &App, entered: &Try<'_>, origin: &Origin) -> HttpError {
    match compare(app, entered, origin).await {
        Ok(_counted) => CommandError::<Refusal>::OtherRequest.into(),
        Err(refused) => refused,
    }
}

async fn compare<'a>(
    app: &'a App,
    entered: &Try<'_>,
    origin: &Origin,
) -> Result<Option<Try<'a>>, HttpError> {
    let Some(receipt) = &origin.receipt else {
        return Ok(None);
    };
    let throttles = app.accounts.throttles();
    let compared = throttles.repeat(entered.visitor(), receipt).await?;
    Ok(Some(compared))
}

async fn signed_in(
    app: &App,
    account: &Account,
    position: Option<Position>,
) -> Result<Response, HttpError> {
    let session = Session::open(app, account).await?;
    let session = session.ok_or_else(|| Refusal::Gone.into_http())?;
    let position = position.map(position_header);
    let answer = (NOT_KEPT, Json(session)).into_response();
    Ok(match position {
        Some(position) => (position, answer).into_response(),
        None => answer,
    })
}

/// The account that a number signs in: the one that holds it. Having named it at registration gives
/// no right to it, otherwise a number's new owner would get into an account that a stranger has
/// opened. The same steps are taken if nobody holds it.
async fn whose(app: &App, phone: &Phone) -> Result<Option<Account>, LogError> {
    let held = Claim::of_phone(&app.commands, phone).await?;
    load(&app.commands, held.holder().unwrap_or(NOBODY)).await
}

/// An account that holds a number now.
struct Attached {
    account: Account,
    /// The position of that write, if one was needed.
    position: Option<Position>,
}

/// Makes the account the number's holder, if it is not yet.
async fn attach(
    commands: &Commands,
    origin: &Origin,
    account: Account,
    phone: &Phone,
) -> Result<Attached, CommandError<Refusal>> {
    let attempt = || async {
        let attached = |account, position| Attached { account, position };
        let slot = match commands.earlier(origin).await? {
            Earlier::Repeat(repeated) => {
                return Ok(Some(attached(account.clone(), Some(repeated.position))));
            }
            Earlier::None(slot) => slot,
        };
        let held = Claim::of_phone(commands, phone).await?;
        let (account, mut writes) = match held.holder() {
            Some(holder) if holder == account.id => (account.clone(), Vec::new()),
            Some(_) => return Err(CommandError::Refused(Refusal::HeldByAnother)),
            None => {
                let account = load(commands, account.id).await?;
                let account = account.ok_or(CommandError::Refused(Refusal::Gone))?;
                let writes = taking(commands, origin, &account, phone, &held).await?;
                (account, writes)
            }
        };
        let holder = account.id.to_string();
        writes.extend(commands.claiming(origin, slot, holder));
        if writes.is_empty() {
            return Ok(Some(attached(account, None)));
        }
        let position = commands.commit(writes).await?;
        Ok(position.map(|position| attached(account, Some(position))))
    };
    until_written(attempt).await
}

/// Returns the writes that claim a number for an account, and release the one it held before.
async fn taking(
    commands: &Commands,
    origin: &Origin,
    account: &Account,
    phone: &Phone,
    free: &Claim,
) -> Result<Vec<Write>, LogError> {
    let vault = commands.log().vault();
    let sealed = vault
        .seal(&Binding::VerifiedPhone(account.id), phone.as_str())
        .await?;
    let verified = Event::AccountPhoneVerified(PhoneVerified {
        account_id: account.id,
        phone: sealed,
    });
    let stream = StreamId::of_account(account.id);
    let expected = Expected::At(account.last_sequence);
    let mut writes = vec![commands.write(origin, commands.now(), stream, expected, vec![verified])];
    writes.extend(stored::phone_given_back(commands, origin, account).await?);
    writes.push(free.taken_by(commands, origin, account.id));
    Ok(writes)
}
