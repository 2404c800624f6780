//! The channels that a socket can subscribe to.

use schemas::AggregateType;

/// A flow of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// What happens to the organization's runs, from `workflow.triggered` to their end.
    Runs,
    /// Every event of the organization's public feed.
    Events,
}

impl Channel {
    /// The channel of this name, or why there is none.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        match name {
            "runs" => Ok(Self::Runs),
            "events" => Ok(Self::Events),
            // Persons' channels are published names already, so a client learns which it is.
            "locations" | "places" | "sos" => {
                Err(format!("the channel `{name}` is not offered yet"))
            }
            _ => Err("`channel` must be `runs` or `events`".to_owned()),
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Events => "events",
        }
    }

    /// The one kind of aggregate whose events it carries, where it is one. A run's stream begins
    /// with its `workflow.triggered`.
    pub(super) fn only(self) -> Option<AggregateType> {
        match self {
            Self::Runs => Some(AggregateType::Run),
            Self::Events => None,
        }
    }

    /// Whether it carries the events of this kind of aggregate.
    pub(super) fn carries(self, kind: AggregateType) -> bool {
        self.only().is_none_or(|only| only == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_known_by_its_name() {
        for channel in [Channel::Runs, Channel::Events] {
            assert_eq!(Channel::named(channel.name()), Ok(channel));
        }
        assert!(Channel::named("sos").unwrap_err().contains("not offered"));
        assert!(Channel::named("Runs").unwrap_err().contains("must be"));
    }
}
