//! The session that a sign-in returns.

use axum::http::header::{CACHE_CONTROL, HeaderName};
use domain::account::Account;
use event_log::Binding;
use schemas::{AccountId, TokenId};
use serde::Serialize;

use super::stored::unseal;
use crate::{App, LogError};

/// Responses that contain a token are for nobody else.
pub(crate) const NOT_KEPT: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

/// An access token and its owner.
#[derive(Clone, Serialize)]
pub(crate) struct Session {
    pub(crate) access_token: String,
    token_type: &'static str,
    pub(crate) expires_in: u64,
    user: User,
}

#[derive(Clone, Serialize)]
struct User {
    id: u64,
    name: String,
    email: String,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(…)")
    }
}

impl Session {
    /// The owner's account.
    pub(crate) fn account(&self) -> AccountId {
        AccountId(self.user.id)
    }

    /// Opens a session, unless the account was just forgotten.
    pub(super) async fn open(app: &App, account: &Account) -> Result<Option<Self>, LogError> {
        let commands = &app.commands;
        let name = unseal(commands, &Binding::Name(account.id), &account.name).await?;
        let email = unseal(commands, &Binding::Email(account.id), &account.email).await?;
        let (Some(name), Some(email)) = (name, email) else {
            return Ok(None);
        };
        let token = TokenId::from(commands.random.id());
        let token = app.access.make_token(account.id, &token, account.passwords);
        let user = User {
            id: account.id.0,
            name,
            email,
        };
        Ok(Some(Self {
            access_token: token.access_token,
            token_type: "bearer",
            expires_in: token.expires_in,
            user,
        }))
    }
}
