//! Operations that an operator requests of the projector.

/// A kind of operation on a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Rebuild it from the first event.
    Rebuild,
    /// Compare its rows with the log.
    Verify,
    /// Apply dead letters again.
    Retry,
    /// Skip dead letters permanently.
    Skip,
}

impl OperationKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Rebuild, Self::Verify, Self::Retry, Self::Skip];

    /// The kind as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Verify => "verify",
            Self::Retry => "retry",
            Self::Skip => "skip",
        }
    }

    /// Parses a stored kind.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether it is about dead letters rather than a whole projection.
    pub const fn is_about_letters(self) -> bool {
        matches!(self, Self::Retry | Self::Skip)
    }
}
