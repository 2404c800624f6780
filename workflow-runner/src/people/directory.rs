//! The directory of persons, folded from the events of accounts and circles.

use domain::circles::Circles;
use event_log::Batch;
use schemas::AggregateType;

/// The directory of persons.
#[derive(Default)]
pub struct Directory {
    circles: Circles,
    /// The sequence up to which everything is included.
    through: u64,
    webhooks_through: u64,
}

impl Directory {
    /// A directory that starts with the circles as of the sequence `through`.
    pub(super) fn beginning(through: u64, circles: Circles) -> Self {
        Self {
            circles,
            through,
            webhooks_through: 0,
        }
    }

    /// Who sees whom.
    pub fn circles(&self) -> &Circles {
        &self.circles
    }

    /// The sequence up to which every event of an account or a circle is included.
    pub(super) fn through(&self) -> u64 {
        self.through
    }

    /// The sequence of the last event of a webhook endpoint since this was created.
    pub fn webhooks_through(&self) -> u64 {
        self.webhooks_through
    }

    /// Takes in a batch of the log; events that are delivered again change nothing.
    pub(super) fn apply(&mut self, batch: &Batch) {
        for recorded in batch.readable("persons") {
            match recorded.stream.aggregate {
                AggregateType::Account | AggregateType::Circle => self.circles.apply(recorded),
                AggregateType::Webhook => {
                    self.webhooks_through = self.webhooks_through.max(recorded.sequence);
                }
                _ => {}
            }
        }
        self.through = self.through.max(batch.last_sequence);
    }
}
