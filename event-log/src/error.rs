//! Errors of everything but an append.

use async_nats::ConnectErrorKind;

use crate::WentBack;

/// Why the log cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is invalid.
    #[error("NATS_URL is not a list of addresses such as nats://host:4222: {0}")]
    Address(String),
    /// No server answers.
    #[error("cannot reach NATS: {0}")]
    Connect(#[source] async_nats::ConnectError),
    /// The server is too old or lacks what the log depends on.
    #[error("the NATS server cannot carry the log: {0}")]
    Unfit(String),
    /// The log was created with another master key, or this one was rotated away.
    #[error(
        "the log was created with another master key, or the key has been rotated: put the \
         current secrets/master.key into WAYPOST_HOME, or set WAYPOST_MASTER_KEY"
    )]
    OtherMasterKey,
    /// A stream or bucket could not be created or read back.
    #[error("cannot prepare {name}: {reason}")]
    Prepare {
        /// The stream or bucket.
        name: String,
        /// The server's error.
        reason: String,
    },
}

impl Error {
    /// Whether the log may be usable a moment later: its servers are unavailable, or not ready yet.
    fn passes(&self) -> bool {
        match self {
            Self::Connect(error) => !matches!(
                error.kind(),
                ConnectErrorKind::ServerParse
                    | ConnectErrorKind::Authentication
                    | ConnectErrorKind::AuthorizationViolation
                    | ConnectErrorKind::Tls
            ),
            Self::Prepare { .. } => true,
            Self::Address(_) | Self::Unfit(_) | Self::OtherMasterKey => false,
        }
    }
}

/// Whether something failed only because the log is unavailable or not ready yet.
pub fn is_away(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| {
        cause.downcast_ref().is_some_and(Error::passes)
            || cause.downcast_ref().is_some_and(ReadError::passes)
    })
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The log does not answer.
    #[error("the event log does not answer: {0}")]
    Unavailable(String),
    /// An entry of the log is not an event.
    #[error("event {sequence} cannot be read: {reason}")]
    Undecodable {
        /// Its sequence.
        sequence: u64,
        /// Why.
        reason: String,
    },
}

impl ReadError {
    /// Whether the same read may succeed a moment later.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Why a tail cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// Events are missing from the log that nobody deleted.
    #[error("the log has a gap: sequences {from} to {to} are missing and were never deleted")]
    Hole {
        /// The first missing sequence.
        from: u64,
        /// The last missing sequence.
        to: u64,
    },
    /// Events that were read are no longer there.
    #[error(transparent)]
    WentBack(#[from] WentBack),
}
