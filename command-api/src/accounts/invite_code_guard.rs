//! Codes of links, which may be guesses.

use service::HttpError;

use super::address::ClientAddress;
use super::throttle::Name;
use crate::{App, CommandError, Refusal};

/// Does what a link's code is for. A wrong code counts as a failed sign-in of the client's address,
/// so that no client can have the log searched for guesses without end.
pub(crate) async fn with_code<T, R: Refusal>(
    app: &App,
    address: ClientAddress,
    code: &str,
    doing: impl Future<Output = Result<T, CommandError<R>>>,
) -> Result<T, HttpError> {
    let name = Name::Invite(code);
    let entered = app.accounts.throttles().sign_in(address.0, name).await?;
    let done = doing.await;
    match &done {
        Ok(_) => entered.succeeded().await,
        Err(CommandError::Refused(_)) => {}
        Err(_) => entered.forgive().await,
    }
    Ok(done?)
}
