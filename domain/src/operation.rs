//! What an operator asks of the projector.

/// A kind of operation on a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Fold it anew from the first event.
    Rebuild,
    /// Compare its rows with the log.
    Verify,
    /// Apply dead letters again.
    Retry,
    /// Leave dead letters out for good.
    Skip,
}

impl OperationKind {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Rebuild, Self::Verify, Self::Retry, Self::Skip];

    /// As it is written down.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Verify => "verify",
            Self::Retry => "retry",
            Self::Skip => "skip",
        }
    }

    /// Reads what was written down.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether it is about dead letters, and not about all of a projection.
    pub const fn is_about_letters(self) -> bool {
        matches!(self, Self::Retry | Self::Skip)
    }
}
