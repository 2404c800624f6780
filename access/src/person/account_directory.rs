//! The state of accounts, folded from the log: only what differs from the default is kept.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use chrono::{DateTime, TimeDelta, Utc};
use event_log::checkpoint::Encoder;
use schemas::account::{Tier, TierSet};
use schemas::{AccountId, Event, Recorded, TokenId};
use serde::{Deserialize, Serialize};

/// The version of the checkpoint format. Increment it when changing that format, or what events do
/// to it: a checkpoint of another version is folded again from the log.
pub(super) const FORM: u8 = 1;

/// Number of signed-out tokens at which expired ones are first searched for.
const FIRST_SWEEP: usize = 1_024;
/// How long they are kept after that: clocks differ, and other processes start from what one
/// process saves.
const CLOCKS_APART: TimeDelta = TimeDelta::days(1);

/// The known state of all accounts.
#[derive(Default)]
pub(super) struct AccountDirectory(RwLock<Accounts>);

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Accounts {
    statuses: HashMap<AccountId, AccountStatus>,
    signed_out: HashMap<TokenId, DateTime<Utc>>,
    #[serde(skip)]
    sweep_at: usize,
    last_sequence: u64,
}

/// What differs from an account that was only registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AccountStatus {
    /// How often its password was changed.
    pub(super) passwords: u32,
    pub(super) forgotten: bool,
    pub(super) allowance: Allowance,
}

/// The tier, and the operator's own numbers in place of the tier's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Allowance {
    pub(super) tier: Tier,
    pub(super) requests: Option<u32>,
    pub(super) locations: Option<u32>,
}

impl AccountDirectory {
    /// Creates a directory that starts from a checkpoint.
    pub(super) fn beginning(accounts: Accounts) -> Self {
        Self(RwLock::new(accounts))
    }

    /// Encodes everything known, to be saved.
    pub(super) fn encode(&self, encoder: Encoder) -> Result<Vec<u8>, String> {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        encoder.encode(accounts.last_sequence, &*accounts)
    }

    pub(super) fn status(&self, account: AccountId) -> AccountStatus {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts.statuses.get(&account).copied().unwrap_or_default()
    }

    pub(super) fn is_signed_out(&self, token: &TokenId) -> bool {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts.signed_out.contains_key(token)
    }

    /// The sequence of the last account event that was applied.
    pub(super) fn last_sequence(&self) -> u64 {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        accounts.last_sequence
    }

    /// Applies an account event. Applying it twice has no further effect.
    pub(super) fn apply(&self, recorded: &Recorded, now: DateTime<Utc>) {
        let mut accounts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if recorded.sequence > accounts.last_sequence {
            accounts.last_sequence = recorded.sequence;
            // Uses the earlier of two clocks, one of which may be ahead.
            let now = now.min(recorded.time);
            accounts.take_up(&recorded.event, now - CLOCKS_APART);
        }
    }
}

impl Accounts {
    /// Applies an event; tokens that expired before `past` are not kept.
    fn take_up(&mut self, event: &Event, past: DateTime<Utc>) {
        match event {
            Event::AccountPasswordChanged(changed) => {
                self.of(changed.account_id).passwords += 1;
            }
            Event::AccountSignedOut(signed_out) if signed_out.expires_at > past => {
                self.sweep(past);
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

    fn of(&mut self, account: AccountId) -> &mut AccountStatus {
        self.statuses.entry(account).or_default()
    }

    /// Drops expired tokens whenever there are twice as many as after the last time.
    fn sweep(&mut self, past: DateTime<Utc>) {
        if self.signed_out.len() < self.sweep_at.max(FIRST_SWEEP) {
            return;
        }
        self.signed_out.retain(|_, expires_at| *expires_at > past);
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
    use std::ops::Range;

    use schemas::account::{Forgotten, PasswordChanged, SignedOut};
    use schemas::{AggregateType, Context, EventId, OrgId, Sealed, StreamId};
    use uuid::Uuid;

    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn recorded(sequence: u64, event: Event) -> Recorded {
        recorded_at(now(), sequence, event)
    }

    fn recorded_at(time: DateTime<Utc>, sequence: u64, event: Event) -> Recorded {
        Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Account, "7"),
            id: EventId(Uuid::new_v4()),
            time,
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

    fn tier_set() -> Event {
        Event::AccountTierSet(TierSet {
            account_id: AccountId(7),
            tier: Tier::Family,
            requests: Some(5),
            locations: None,
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
        assert_eq!(directory.status(AccountId(7)).passwords, 1);
        assert_eq!(directory.status(AccountId(8)), AccountStatus::default());
        assert_eq!(directory.last_sequence(), 5);
    }

    #[test]
    fn the_forgotten_are_marked_and_tiers_are_kept() {
        let directory = AccountDirectory::default();
        directory.apply(&recorded(1, tier_set()), now());
        let forgotten = Event::AccountForgotten(Forgotten {
            account_id: AccountId(7),
        });
        directory.apply(&recorded(2, forgotten), now());
        let status = directory.status(AccountId(7));
        assert!(status.forgotten);
        assert_eq!(status.allowance.tier, Tier::Family);
        assert_eq!(status.allowance.requests, Some(5));
    }

    /// Signs out tokens that are named by the sequences of these events and expire a second after
    /// them.
    fn sign_out(directory: &AccountDirectory, sequences: Range<u64>, at: DateTime<Utc>) {
        for sequence in sequences {
            let event = signed_out(&sequence.to_string(), at + TimeDelta::seconds(1));
            directory.apply(&recorded_at(at, sequence, event), at);
        }
    }

    #[test]
    fn tokens_that_ended_by_themselves_take_no_memory() {
        let (directory, some) = (AccountDirectory::default(), 2 * FIRST_SWEEP as u64);
        let past = signed_out("past", now() - CLOCKS_APART);
        directory.apply(&recorded(1, past), now());
        assert!(!directory.is_signed_out(&TokenId::from("past")));
        sign_out(&directory, 2..some, now());
        assert!(directory.is_signed_out(&TokenId::from("2")));
        let later = now() + CLOCKS_APART + TimeDelta::hours(1);
        sign_out(&directory, some..2 * some, later);
        let kept = directory.0.read().unwrap().signed_out.len();
        assert_eq!(kept, 2 * FIRST_SWEEP);
        assert!(!directory.is_signed_out(&TokenId::from("2")));
    }

    #[test]
    fn a_clock_that_runs_ahead_lets_nobody_in_again() {
        let (directory, some) = (AccountDirectory::default(), 2 * FIRST_SWEEP as u64);
        sign_out(&directory, 1..some, now());
        for sequence in some..2 * some {
            let until = now() + TimeDelta::seconds(1);
            let event = recorded(sequence, signed_out(&sequence.to_string(), until));
            directory.apply(&event, now() + TimeDelta::days(400));
        }
        assert!(directory.is_signed_out(&TokenId::from("2")));
        assert!(directory.is_signed_out(&TokenId::from(some.to_string())));
    }

    fn noted(directory: &AccountDirectory) -> Vec<u8> {
        postcard::to_extend(&*directory.0.read().unwrap(), Vec::new()).unwrap()
    }

    #[test]
    fn what_was_noted_goes_on_as_if_it_had_not_been() {
        let directory = AccountDirectory::default();
        let until = now() + TimeDelta::hours(1);
        directory.apply(&recorded(3, signed_out("token", until)), now());
        let changed = Event::AccountPasswordChanged(PasswordChanged {
            account_id: AccountId(7),
            password_hash: Sealed::from_ciphertext(String::new()),
        });
        directory.apply(&recorded(5, changed), now());
        let begun = AccountDirectory::beginning(postcard::from_bytes(&noted(&directory)).unwrap());
        assert_eq!(begun.last_sequence(), 5);
        assert_eq!(begun.status(AccountId(7)).passwords, 1);
        assert!(begun.is_signed_out(&TokenId::from("token")));
    }

    /// Increment [`FORM`] when this has to change.
    #[test]
    fn the_form_is_the_one_of_its_version() {
        let directory = AccountDirectory::default();
        directory.apply(&recorded(300, tier_set()), now());
        directory.apply(&recorded(301, signed_out("t", now())), now());
        let form = b"\x01\x07\x00\x00\x01\x01\x05\x00\x01\x01t\x142027-01-15T08:00:00Z\xad\x02";
        assert_eq!((FORM, noted(&directory).as_slice()), (1, &form[..]));
    }
}
