//! Persons' accounts: opening one, signing in and out, phone numbers and their one-time codes.

mod address;
mod argon;
mod change_password;
mod codes;
mod delete;
mod forget;
mod forget_runs;
mod invite_code_guard;
mod login;
mod logout;
mod network;
mod password;
mod password_queue;
mod register;
mod send_code;
mod sender;
mod session;
mod settings;
pub(crate) mod stored;
mod throttle;
mod tier;
mod token_replay;
mod unfinished;
mod verify_code;

use std::path::Path;
use std::sync::Arc;

use access::{Access, Person};
use axum::Router;
use axum::routing::post;
use event_log::Keyring;
use sqlx::PgPool;

use crate::App;
use crate::follow::until;

pub use forget::{ForgetError, Forgotten, forget, holder};
pub use password::Passwords;
pub use register::{OpenError, open};
pub use sender::SendError;
pub use settings::{AccountSettings, SmsSettings};
pub use tier::{NoAccount, Tiered, set_tier};
pub use unfinished::Unfinished;

pub(crate) use address::ClientAddress;
pub(crate) use invite_code_guard::with_code;
pub(crate) use login::session_for;
pub(crate) use logout::end as end_token;
pub(crate) use session::NOT_KEPT;

use codes::Codes;
use sender::Sender;
use throttle::Throttles;

/// Dependencies of accounts besides the log. Clones share them.
#[derive(Clone)]
pub(crate) struct Accounts(Arc<Inner>);

struct Inner {
    settings: AccountSettings,
    passwords: Passwords,
    codes: Codes,
    sender: Sender,
    throttles: Throttles,
}

impl Accounts {
    /// Codes are stored in the database of `pool`, and sent through the outbox in `home` if the
    /// settings name no other way.
    pub(crate) fn new(
        settings: AccountSettings,
        pool: PgPool,
        keyring: &Keyring,
        home: &Path,
    ) -> Result<Self, SendError> {
        Ok(Self(Arc::new(Inner {
            passwords: settings.passwords(),
            throttles: Throttles::new(&settings, &pool, keyring),
            codes: Codes::new(pool, keyring.clone()),
            sender: Sender::new(&settings.sms, home)?,
            settings,
        })))
    }

    /// The password hasher.
    pub(crate) fn passwords(&self) -> &Passwords {
        &self.0.passwords
    }

    fn settings(&self) -> &AccountSettings {
        &self.0.settings
    }

    fn codes(&self) -> &Codes {
        &self.0.codes
    }

    fn sender(&self) -> &Sender {
        &self.0.sender
    }

    fn throttles(&self) -> &Throttles {
        &self.0.throttles
    }
}

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/auth/register", post(register::register_account))
        .route("/auth/login", post(login::sign_in))
        .route("/auth/logout", post(logout::sign_out))
        .route("/auth/delete", post(delete::delete_account))
        .route("/auth/password", post(change_password::change_password))
        .route("/auth/otp/send", post(send_code::send_code))
        .route("/auth/otp/verify", post(verify_code::verify_code))
}

/// Waits briefly until this process knows that a token has ended, so that the caller can rely on
/// it.
async fn until_ended(access: &Access, person: &Person) {
    until(|| !access.person_is_good(person), "A sign-out").await;
}
