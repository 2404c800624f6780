//! What is known of persons, folded from the events of accounts and circles.

use std::collections::HashMap;

use domain::circles::Circles;
use schemas::{AccountId, AggregateType, Event, Recorded, Sealed};

/// What is known of persons.
#[derive(Default)]
pub struct Directory {
    circles: Circles,
    names: HashMap<AccountId, Sealed>,
    accounts_through: u64,
    webhooks_through: u64,
}

impl Directory {
    /// Who sees whom.
    pub fn circles(&self) -> &Circles {
        &self.circles
    }

    /// What a person is called, sealed under their account.
    pub fn name(&self, account: AccountId) -> Option<&Sealed> {
        self.names.get(&account)
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
        match &recorded.event {
            Event::AccountRegistered(registered) => {
                let account = registered.account_id;
                if !self.circles.is_forgotten(account) {
                    self.names.insert(account, registered.name.clone());
                }
            }
            Event::AccountForgotten(forgotten) => _ = self.names.remove(&forgotten.account_id),
            _ => {}
        }
    }
}
