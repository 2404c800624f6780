//! How accounts stand, folded from the log: only what differs from the default is kept.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use chrono::{DateTime, Utc};
use schemas::account::{Tier, TierSet};
use schemas::{AccountId, Event, Recorded, TokenId};

/// Tokens that were signed out, before those whose time is past are first looked for.
const FIRST_SWEEP: usize = 1_024;

/// What is known of all accounts.
#[derive(Default)]
pub(super) struct AccountDirectory(RwLock<Accounts>);

#[derive(Default)]
struct Accounts {
    standings: HashMap<AccountId, Standing>,
    signed_out: HashMap<TokenId, DateTime<Utc>>,
    sweep_at: usize,
    last_sequence: u64,
}

/// What differs from an account that was only registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// How often its password was changed.
    pub(super) passwords: u32,
    pub(super) forgotten: bool,
    pub(super) allowance: Allowance,
}

/// The tier, and the operator's own numbers in place of the tier's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) tier: Tier,
    pub(super) requests: Option<u32>,
    pub(super) locations: Option<u32>,
}

impl AccountDirectory {
    pub(super) fn standing(&self, account: AccountId) -> Standing {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts
            .standings
            .get(&account)
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn is_signed_out(&self, token: &TokenId) -> bool {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts.signed_out.contains_key(token)
    }

    /// The sequence of the last event of an account that was taken up.
    pub(super) fn last_sequence(&self) -> u64 {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts.last_sequence
    }

    /// Takes up an event of an account; the same event twice is the same as once.
    pub(super) fn apply(&self, recorded: &Recorded, now: DateTime<Utc>) {
        let mut accounts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if recorded.sequence > accounts.last_sequence {
            accounts.last_sequence = recorded.sequence;
            accounts.take_up(&recorded.event, now);
        }
    }
}

impl Accounts {
    fn take_up(&mut self, event: &Event, now: DateTime<Utc>) {
        match event {
            Event::AccountPasswordChanged(changed) => {
                self.of(changed.account_id).passwords += 1;
            }
            Event::AccountSignedOut(signed_out) if signed_out.expires_at > now => {
                self.sweep(now);
                let token = signed_out.token_id.clone();
                self.signed_out.insert(token, signed_out.expires_at);
            }
            Event::AccountTierSet(set) => {
                self.of(set.account_id).allowance = Allowance::from(set);
            }
            Event::AccountForgotten(forgotten) => {
                self.of(forgotten.account_id).forgotten = true;
            }
            _ => (),
        }
    }

    fn of(&mut self, account: AccountId) -> &mut Standing {
        self.standings.entry(account).or_default()
    }

    /// Drops what has ended by itself, whenever there is twice as much as after the last time.
    fn sweep(&mut self, now: DateTime<Utc>) {
        if self.signed_out.len() < self.sweep_at.max(FIRST_SWEEP) {
            return;
        }
        self.signed_out.retain(|_, expires_at| *expires_at > now);
        self.sweep_at = self.signed_out.len() * 2;
    }
}

impl From<&TierSet> for Allowance {
    fn from(set: &TierSet) -> Self {
        Self {
            tier: set.tier,
            requests: set.requests,
            locations: set.locations,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use schemas::account::{Forgotten, PasswordChanged, SignedOut};
    use schemas::{AggregateType, Context, EventId, OrgId, Sealed, StreamId};
    use uuid::Uuid;

    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn recorded(sequence: u64, event: Event) -> Recorded {
        Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Account, "7"),
            id: EventId(Uuid::new_v4()),
            time: now(),
            event,
            context: Context::default(),
            receipt: None,
        }
    }

    fn signed_out(token: &str, expires_at: DateTime<Utc>) -> Event {
        Event::AccountSignedOut(SignedOut {
            account_id: AccountId(7),
            token_id: TokenId::from(token),
            expires_at,
        })
    }

    #[test]
    fn an_event_counts_once_however_often_it_comes() {
        let directory = AccountDirectory::default();
        let changed = Event::AccountPasswordChanged(PasswordChanged {
            account_id: AccountId(7),
            password_hash: Sealed::from_ciphertext(String::new()),
        });
        let changed = recorded(5, changed);
        directory.apply(&changed, now());
        directory.apply(&changed, now());
        assert_eq!(directory.standing(AccountId(7)).passwords, 1);
        assert_eq!(directory.standing(AccountId(8)), Standing::default());
        assert_eq!(directory.last_sequence(), 5);
    }

    #[test]
    fn the_forgotten_are_marked_and_tiers_are_kept() {
        let directory = AccountDirectory::default();
        let set = Event::AccountTierSet(TierSet {
            account_id: AccountId(7),
            tier: Tier::Family,
            requests: Some(5),
            locations: None,
        });
        directory.apply(&recorded(1, set), now());
        let forgotten = Event::AccountForgotten(Forgotten {
            account_id: AccountId(7),
        });
        directory.apply(&recorded(2, forgotten), now());
        let standing = directory.standing(AccountId(7));
        assert!(standing.forgotten);
        assert_eq!(standing.allowance.tier, Tier::Family);
        assert_eq!(standing.allowance.requests, Some(5));
    }

    #[test]
    fn tokens_that_ended_by_themselves_take_no_memory() {
        let directory = AccountDirectory::default();
        directory.apply(&recorded(1, signed_out("past", now())), now());
        assert!(!directory.is_signed_out(&TokenId::from("past")));
        let soon = now() + TimeDelta::seconds(1);
        for sequence in 2..=(2 * FIRST_SWEEP as u64) {
            let token = sequence.to_string();
            directory.apply(&recorded(sequence, signed_out(&token, soon)), now());
        }
        assert!(directory.is_signed_out(&TokenId::from("2")));
        let later = now() + TimeDelta::hours(1);
        let first_sweep = 1 + 2 * FIRST_SWEEP as u64;
        for sequence in first_sweep..first_sweep + 2 * FIRST_SWEEP as u64 {
            let until = later + TimeDelta::seconds(1);
            let event = signed_out(&sequence.to_string(), until);
            directory.apply(&recorded(sequence, event), later);
        }
        let kept = directory.0.read().unwrap().signed_out.len();
        assert_eq!(kept, 2 * FIRST_SWEEP);
        assert!(!directory.is_signed_out(&TokenId::from("2")));
    }
}
