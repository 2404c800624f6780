//! Sends one-time codes.

mod http;
mod outbox;

use std::path::Path;

use chrono::{DateTime, Utc};
use domain::account::Phone;

use super::settings::SmsSettings;

use http::Messages;
use outbox::Outbox;

/// Sends codes in the way that the settings choose.
#[derive(Debug)]
pub(super) enum Sender {
    /// By a service.
    Messages(Messages),
    /// Into a file, for development and tests.
    Outbox(Outbox),
}

/// Why a code was not sent. It reveals nothing of the code or the number.
#[derive(Debug, thiserror::Error)]
#[error("the code could not be sent: {0}")]
pub struct SendError(pub(super) String);

impl Sender {
    pub(super) fn new(settings: &SmsSettings, home: &Path) -> Result<Self, SendError> {
        let named = settings.url.as_deref().filter(|url| !url.is_empty());
        Ok(match named {
            Some(url) => Self::Messages(Messages::new(url, settings)?),
            None => Self::Outbox(Outbox::new(home)),
        })
    }

    pub(super) async fn send(
        &self,
        phone: &Phone,
        code: &str,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        match self {
            Self::Messages(messages) => messages.send(phone, code).await,
            Self::Outbox(outbox) => outbox.send(phone, code, now).await,
        }
    }
}
