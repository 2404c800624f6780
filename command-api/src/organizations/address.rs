//! An invited address, and what is stored of it.

use domain::account::Email;
use event_log::Owner;
use schemas::claim::Claimed;
use schemas::{AccountId, Event, OrgId, StreamId};

use crate::accounts::stored::{Claim, load, new_account_id};
use crate::{Commands, LogError};

/// The kind of claim by which the code of a link finds its organization.
pub(super) const CODE: &str = "organization invite";
/// The kind of claim that records every invite of an address, so that all of it can be forgotten.
const ADDRESS: &str = "invited address";

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

/// One of the invites that an address ever had.
pub(super) struct Noted {
    pub(super) org: OrgId,
    pub(super) account: AccountId,
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

/// Reads all invites that an address ever had.
pub(super) async fn noted(commands: &Commands, email: &Email) -> Result<Vec<Noted>, LogError> {
    let notes = commands.log().load(&notes(commands, email)).await?;
    let read = |event: &Event| match event {
        Event::ClaimClaimed(Claimed { holder }) => {
            let (account, org) = holder.split_once(' ')?;
            Some(Noted {
                org: OrgId::from(org),
                account: AccountId(account.parse().ok()?),
            })
        }
        _ => None,
    };
    Ok(notes.iter().filter_map(|note| read(&note.event)).collect())
}
