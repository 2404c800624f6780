//! Answers that contain a token, given again to a repeat with the same `Idempotency-Key`: for a
//! short while, unless the account's tokens have been ended since, and never for fewer attempts
//! than the first one.

use domain::account::Account;
use schemas::AccountId;
use service::HttpError;

use super::stored::load;
use crate::commands::Repeated;
use crate::{App, Commands, LogError};

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

/// 409: the first answer is no longer repeated.
pub(super) fn lapsed() -> HttpError {
    HttpError::conflict(
        "this Idempotency-Key was already used, and its answer is not repeated any more because \
         it contained an access token; sign in",
    )
}
