//! Why the server ends a connection.

use std::time::Duration;

use axum::extract::ws::CloseFrame;

/// A reason with its close code: 3000–3499 ask the client to connect again, 3500–3999 not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// This process is shutting down; another one continues.
    ShuttingDown,
    /// This process can no longer follow the log.
    LogBroken,
    /// The client does not read, however long the server waits.
    Stalled,
    /// The client is not heard from.
    Silent,
    /// The limit of the key or account is used up.
    OverLimit,
    /// The token is unknown here.
    UnknownToken,
    /// The key was revoked, the token was ended, or it has expired.
    TokenEnded,
    /// No token came in time.
    NoToken,
    /// The key lacks the scope.
    MissingScope,
    /// A frame that is too large or breaks the protocol.
    BadFrame,
    /// Too many frames, or too many malformed ones.
    Abuse,
}

impl CloseReason {
    /// The close code.
    pub(super) fn code(self) -> u16 {
        match self {
            Self::ShuttingDown => 3000,
            Self::LogBroken => 3001,
            Self::Stalled => 3002,
            Self::Silent => 3003,
            Self::OverLimit => 3004,
            Self::UnknownToken => 3500,
            Self::TokenEnded => 3501,
            Self::NoToken => 3502,
            Self::MissingScope => 3503,
            Self::BadFrame => 3504,
            Self::Abuse => 3505,
        }
    }

    /// The reason in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::ShuttingDown => "the server is shutting down",
            Self::LogBroken => "the server cannot follow the event log",
            Self::Stalled => "the client does not read",
            Self::Silent => "the client does not answer pings",
            Self::OverLimit => "rate limit exceeded",
            Self::UnknownToken => "invalid token",
            Self::TokenEnded => "the token has expired or was revoked",
            Self::NoToken => "no token came in time",
            Self::MissingScope => "the key lacks the scope events:read",
            Self::BadFrame => "invalid frame",
            Self::Abuse => "too many frames",
        }
    }

    pub(super) fn frame(self) -> CloseFrame {
        CloseFrame {
            code: self.code(),
            reason: self.words().into(),
        }
    }
}

/// How long a client may take to answer the close frame.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
