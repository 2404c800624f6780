//! Answers that contain a token, given again to a repeat with the same `Idempotency-Key`: for a
//! short while, unless the account's tokens have been ended since, and never for fewer attempts
//! than the first one.

use domain::account::Account;
use schemas::AccountId;
use service::HttpError;

use super::stored::{is_password, load};
use super::throttle::Try;
use crate::commands::Repeated;
use crate::{App, CommandError, Commands, LogError, Refusal};

/// The first answer is no longer repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this Idempotency-Key was already used, and its answer is not repeated any more because it \
     contained an access token; sign in with another key or without one"
)]
pub(super) struct Lapsed;

impl Refusal for Lapsed {
    fn into_http(self) -> HttpError {
        HttpError::conflict(self.to_string())
    }
}

/// The account that a first answer signed in, if the answer may still be repeated.
pub(super) async fn still_good(
    app: &App,
    repeated: &Repeated,
) -> Result<Option<Account>, LogError> {
    let age = app.commands.now() - repeated.time;
    // A clock that runs behind the one that wrote it does not make it older.
    if age.to_std().unwrap_or_default() >= app.accounts.settings().token_repeat {
        return Ok(None);
    }
    let account = account_of(&app.commands, &repeated.holder).await?;
    let answered = repeated.position.sequence();
    Ok(account.filter(|account| account.tokens_ended < answered))
}

/// The account that a first answer signed in, for a repeat that has to present its password: a
/// receipt contains nothing of passwords, so that none can be guessed from it. The repeat counts as
/// the attempt that it is.
pub(super) async fn by_password(
    app: &App,
    entered: Try<'_>,
    repeated: &Repeated,
    password: String,
) -> Result<Account, CommandError<Lapsed>> {
    let account = still_good(app, repeated).await;
    let (entered, account) = entered.unless_failed(account).await?;
    let account = account.ok_or(CommandError::Refused(Lapsed))?;
    let right = is_password(app, entered.visitor(), &account, password).await;
    let right = right.map(|right| right.then_some(account));
    entered.settle(&right).await;
    right?.ok_or(CommandError::OtherRequest)
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
