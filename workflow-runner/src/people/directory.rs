//! What is known of persons, folded from the events of accounts and circles.

use domain::circles::Circles;
use schemas::{AggregateType, Recorded};

/// What is known of persons.
#[derive(Default)]
pub struct Directory {
    circles: Circles,
    accounts_through: u64,
    webhooks_through: u64,
}

impl Directory {
    /// Who sees whom.
    pub fn circles(&self) -> &Circles {
        &self.circles
    }

    /// The sequence of the last event of an account.
    pub fn accounts_through(&self) -> u64 {
        self.accounts_through
    }

    /// The sequence of the last event of a webhook endpoint since this began.
    pub fn webhooks_through(&self) -> u64 {
        self.webhooks_through
    }

    /// Takes in an event; one that comes again changes nothing.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        match recorded.stream.aggregate {
            AggregateType::Account => {
                self.accounts_through = self.accounts_through.max(recorded.sequence);
            }
            AggregateType::Circle => {}
            AggregateType::Webhook => {
                self.webhooks_through = self.webhooks_through.max(recorded.sequence);
            }
            _ => return,
        }
        self.circles.apply(recorded);
    }
}
