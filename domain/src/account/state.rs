//! An account, folded from its events.

use chrono::{DateTime, Utc};
use schemas::account::TierSet;
use schemas::{AccountId, Event, Recorded, Sealed};

/// An existing account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// The person's name.
    pub name: Sealed,
    /// The person's e-mail address.
    pub email: Sealed,
    /// The hash of the password that the account was opened with.
    pub first_password_hash: Sealed,
    /// The hash of the password.
    pub password_hash: Sealed,
    /// How often the password was changed.
    pub passwords: u32,
    /// The number named at registration.
    pub named: Option<Named>,
    /// The number that the person has verified.
    pub phone: Option<Sealed>,
    /// The tier, if the operator has set one.
    pub tier: Option<TierSet>,
    /// The sequence of the last event that ended tokens: a sign-out or a password change. 0 if
    /// there was none.
    pub tokens_ended: u64,
    /// Whether the person was forgotten: none of the above can be read any more.
    pub forgotten: bool,
    /// The sequence of its last event.
    pub last_sequence: u64,
}

/// A phone number that somebody claims to hold.
#[derive(Clone, Debug)]
pub struct Named {
    /// The number.
    pub phone: Sealed,
    /// When it was named.
    pub at: DateTime<Utc>,
}

impl Account {
    /// Folds an account's events; without a registration there is no account.
    pub fn fold(events: &[Recorded]) -> Option<Self> {
        let (first, later) = events.split_first()?;
        let Event::AccountRegistered(registered) = &first.event else {
            return None;
        };
        let account = Self {
            id: registered.account_id,
            name: registered.name.clone(),
            email: registered.email.clone(),
            first_password_hash: registered.password_hash.clone(),
            password_hash: registered.password_hash.clone(),
            passwords: 0,
            named: None,
            phone: None,
            tier: None,
            tokens_ended: 0,
            forgotten: false,
            last_sequence: first.sequence,
        };
        Some(later.iter().fold(account, Self::after))
    }

    fn after(mut self, recorded: &Recorded) -> Self {
        self.last_sequence = recorded.sequence;
        match &recorded.event {
            Event::AccountPhoneNamed(named) => {
                self.named = Some(Named {
                    phone: named.phone.clone(),
                    at: recorded.time,
                });
            }
            Event::AccountPhoneVerified(verified) => self.phone = Some(verified.phone.clone()),
            Event::AccountPasswordChanged(changed) => {
                self.password_hash = changed.password_hash.clone();
                self.passwords += 1;
                self.tokens_ended = recorded.sequence;
            }
            Event::AccountSignedOut(_) => self.tokens_ended = recorded.sequence,
            Event::AccountTierSet(set) => self.tier = Some(set.clone()),
            Event::AccountForgotten(_) => self.forgotten = true,
            _ => (),
        }
        self
    }

    /// Whether somebody can sign in to it.
    pub const fn is_open(&self) -> bool {
        !self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use schemas::account::{
        Forgotten, PasswordChanged, PhoneNamed, PhoneVerified, Registered, SignedOut,
    };
    use schemas::{AggregateType, Context, EventId, OrgId, StreamId, TokenId};

    use super::*;

    const ID: AccountId = AccountId(7);

    fn sealed(text: &str) -> Sealed {
        Sealed::from_ciphertext(text.to_owned())
    }

    fn recorded(events: Vec<Event>) -> Vec<Recorded> {
        let stream = StreamId::new(&OrgId::from("_"), AggregateType::Account, "7");
        let recorded = events
            .into_iter()
            .zip(1..)
            .map(|(event, sequence)| Recorded {
                sequence,
                stream: stream.clone(),
                id: EventId(uuid::Uuid::nil()),
                time: DateTime::from_timestamp(i64::try_from(sequence).unwrap(), 0).unwrap(),
                event,
                context: Context::default(),
                receipt: None,
            });
        recorded.collect()
    }

    fn registered() -> Event {
        Event::AccountRegistered(Registered {
            account_id: ID,
            name: sealed("name"),
            email: sealed("email"),
            password_hash: sealed("first"),
        })
    }

    #[test]
    fn without_a_registration_there_is_no_account() {
        assert!(Account::fold(&[]).is_none());
        let forgotten = Event::AccountForgotten(Forgotten { account_id: ID });
        assert!(Account::fold(&recorded(vec![forgotten])).is_none());
    }

    #[test]
    fn the_last_password_counts_and_the_first_is_known() {
        let changed = |hash| {
            Event::AccountPasswordChanged(PasswordChanged {
                account_id: ID,
                password_hash: sealed(hash),
            })
        };
        let events = recorded(vec![registered(), changed("second"), changed("third")]);
        let account = Account::fold(&events).unwrap();
        assert_eq!(account.password_hash, sealed("third"));
        assert_eq!(account.first_password_hash, sealed("first"));
        assert_eq!((account.passwords, account.last_sequence), (2, 3));
    }

    #[test]
    fn what_ended_tokens_last_is_known() {
        let tokens_ended = |events| Account::fold(&recorded(events)).unwrap().tokens_ended;
        let left = Event::AccountSignedOut(SignedOut {
            account_id: ID,
            token_id: TokenId::from("token"),
            expires_at: DateTime::UNIX_EPOCH,
        });
        let changed = Event::AccountPasswordChanged(PasswordChanged {
            account_id: ID,
            password_hash: sealed("second"),
        });
        let verified = Event::AccountPhoneVerified(PhoneVerified {
            account_id: ID,
            phone: sealed("number"),
        });
        let mut events = vec![registered(), verified];
        assert_eq!(tokens_ended(events.clone()), 0);
        events.push(left);
        assert_eq!(tokens_ended(events.clone()), 3);
        events.push(changed);
        assert_eq!(tokens_ended(events), 4);
    }

    #[test]
    fn a_number_is_named_then_held_and_the_forgotten_are_not_open() {
        let (account_id, phone) = (ID, sealed("number"));
        let named = Event::AccountPhoneNamed(PhoneNamed {
            account_id,
            phone: phone.clone(),
        });
        let verified = Event::AccountPhoneVerified(PhoneVerified { account_id, phone });
        let forgotten = Event::AccountForgotten(Forgotten { account_id });
        let mut events = vec![registered(), named, verified];
        let account = Account::fold(&recorded(events.clone())).unwrap();
        assert_eq!(account.named.unwrap().at.timestamp(), 2);
        assert_eq!(account.phone, Some(sealed("number")));
        events.push(forgotten);
        assert!(!Account::fold(&recorded(events)).unwrap().is_open());
    }
}
