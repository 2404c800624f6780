//! An invited address, and what is stored of it.

use std::collections::BTreeSet;

use domain::account::Email;
use event_log::Owner;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use schemas::claim::Claimed;
use schemas::{AccountId, Event, OrgId, Recorded, StreamId};

use crate::accounts::stored::{Claim, load, new_account_id};
use crate::{Commands, LogError};

/// The kind of claim by which the code of a link finds its organization.
pub(super) const CODE: &str = "organization invite";
/// The kind of claim that records every invite of an address, so that all of it can be forgotten.
const ADDRESS: &str = "invited address";
/// Keys that are destroyed at the same time.
const SIDE_BY_SIDE: usize = 16;

/// The keyed hash of an address among an organization's invites.
pub(super) fn email_hash(commands: &Commands, org: &OrgId, email: &Email) -> String {
    let parts = &[org.as_str().as_bytes(), email.as_str().as_bytes()];
    let keyring = commands.log().keyring();
    keyring.keyed_hash("organization invite address", parts)
}

/// The keyed hash of a link's code in the log.
pub(super) fn code_hash(commands: &Commands, code: &str) -> String {
    let keyring = commands.log().keyring();
    keyring.keyed_hash("organization invite code", &[code.as_bytes()])
}

/// The account that an address belongs to.
///
/// # Errors
/// [`LogError::Busy`] if the account is just being forgotten.
pub(super) async fn holder(
    commands: &Commands,
    email: &Email,
) -> Result<Option<AccountId>, LogError> {
    let Some(holder) = Claim::of_email(commands, email).await?.holder() else {
        return Ok(None);
    };
    let account = load(commands, holder).await?;
    account.map_or(Err(LogError::Busy), |account| Ok(Some(account.id)))
}

/// The account that personal data in an invite is sealed for: the address' own, or one that may be
/// opened later.
pub(super) fn account_for(commands: &Commands, holder: Option<AccountId>) -> AccountId {
    holder.unwrap_or_else(|| new_account_id(commands))
}

/// Destroys the key of an account that was never opened and never will be.
pub(super) async fn let_go(commands: &Commands, account: AccountId) -> Result<(), LogError> {
    let opened = commands.log().first(&StreamId::of_account(account)).await?;
    if opened.is_none() {
        let vault = commands.log().vault();
        vault.forget(&Owner::Account(account)).await?;
    }
    Ok(())
}

/// Destroys the keys of several such accounts.
pub(super) async fn let_go_all(
    commands: &Commands,
    accounts: impl IntoIterator<Item = AccountId>,
) -> Result<(), LogError> {
    let accounts = accounts.into_iter();
    let destroyed = accounts.map(|account| let_go(commands, account));
    stream::iter(destroyed)
        .buffer_unordered(SIDE_BY_SIDE)
        .try_collect()
        .await
}

/// The stream that records the invites of an address.
pub(super) fn notes(commands: &Commands, email: &Email) -> StreamId {
    commands.log().claim(ADDRESS, email.as_str())
}

/// The record of an invite.
pub(super) fn note(org: &OrgId, account: AccountId) -> Event {
    let holder = format!("{account} {org}");
    Event::ClaimClaimed(Claimed { holder })
}

/// All invites that an address ever had.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// How many there were.
    pub(super) invites: usize,
    /// The organizations that made them, each once: one may have invited the address any number of
    /// times.
    pub(super) orgs: BTreeSet<OrgId>,
    /// The accounts that they were sealed for.
    pub(super) accounts: BTreeSet<AccountId>,
}

impl Noted {
    fn of(notes: &[Recorded]) -> Self {
        let mut noted = Self::default();
        for (account, org) in notes.iter().filter_map(|note| read(&note.event)) {
            noted.invites += 1;
            noted.orgs.insert(org);
            noted.accounts.insert(account);
        }
        noted
    }
}

fn read(note: &Event) -> Option<(AccountId, OrgId)> {
    let Event::ClaimClaimed(Claimed { holder }) = note else {
        return None;
    };
    let (account, org) = holder.split_once(' ')?;
    Some((AccountId(account.parse().ok()?), OrgId::from(org)))
}

/// Reads all invites that an address ever had.
pub(super) async fn noted(commands: &Commands, email: &Email) -> Result<Noted, LogError> {
    let notes = commands.log().load(&notes(commands, email)).await?;
    Ok(Noted::of(&notes))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use schemas::{AggregateType, Context, EventId};
    use uuid::Uuid;

    use super::*;

    fn recorded(event: Event) -> Recorded {
        Recorded {
            sequence: 1,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Claim, "c"),
            id: EventId(Uuid::nil()),
            time: DateTime::UNIX_EPOCH,
            event,
            context: Context::default(),
            receipt: None,
        }
    }

    #[test]
    fn an_organization_that_invited_an_address_many_times_is_looked_at_once() {
        let (one, other) = (OrgId::from("o1"), OrgId::from("o2"));
        let mut notes = vec![recorded(note(&one, AccountId(1))); 20_000];
        notes.push(recorded(note(&other, AccountId(2))));
        notes.push(recorded(Event::ClaimClaimed(Claimed {
            holder: "nobody's".to_owned(),
        })));
        let expected = Noted {
            invites: 20_001,
            orgs: BTreeSet::from([one, other]),
            accounts: BTreeSet::from([AccountId(1), AccountId(2)]),
        };
        assert_eq!(Noted::of(&notes), expected);
    }
}
