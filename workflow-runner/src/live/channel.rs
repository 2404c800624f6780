//! The channels that a socket can subscribe to.

use schemas::{AggregateType, Log};

/// A flow of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// What happens to the organization's runs, from `workflow.triggered` to their end.
    Runs,
    /// Every event of the organization's public feed.
    Events,
    /// Positions of the persons whom the viewer may see.
    Locations,
    /// The places they enter and leave.
    Places,
    /// Their calls for help.
    Sos,
}

impl Channel {
    const ALL: [Self; 5] = [
        Self::Runs,
        Self::Events,
        Self::Locations,
        Self::Places,
        Self::Sos,
    ];

    /// The channel of this name, or why there is none.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|channel| channel.name() == name);
        named.ok_or_else(|| {
            "`channel` must be `locations`, `places`, `sos`, `runs` or `events`".to_owned()
        })
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Events => "events",
            Self::Locations => "locations",
            Self::Places => "places",
            Self::Sos => "sos",
        }
    }

    /// Whether it carries events of persons for those who may see them, rather than an
    /// organization's own.
    pub(super) fn is_of_persons(self) -> bool {
        matches!(self, Self::Locations | Self::Places | Self::Sos)
    }

    /// The kind of aggregate whose events it carries, if it is only one. A run's stream begins with
    /// its `workflow.triggered`.
    pub(super) fn only(self) -> Option<AggregateType> {
        match self {
            Self::Runs => Some(AggregateType::Run),
            Self::Events => None,
            Self::Locations => Some(AggregateType::Track),
            Self::Places => Some(AggregateType::Presence),
            Self::Sos => Some(AggregateType::Sos),
        }
    }

    /// The stream of the log that its positions belong to.
    pub(super) fn log(self) -> Log {
        self.only().map_or(Log::Events, AggregateType::log)
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
        for channel in Channel::ALL {
            assert_eq!(Channel::named(channel.name()), Ok(channel));
        }
        assert!(Channel::named("Runs").unwrap_err().contains("must be"));
    }

    #[test]
    fn only_positions_are_in_a_stream_of_their_own() {
        for channel in Channel::ALL {
            let apart = channel.log() != Log::Events;
            assert_eq!(apart, channel == Channel::Locations);
        }
    }
}
