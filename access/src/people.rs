//! An organization's people and open invites, read from the log: they are few and rarely requested.

use chrono::{DateTime, Utc};
use domain::organization::Organization;
use event_log::{Binding, EventLog, ReadError, VaultError};
use schemas::organization::Role;
use schemas::{AccountId, AggregateType, Event, InviteId, OrgId, Sealed, StreamId};
use serde::Serialize;

/// Why the people cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// The log does not answer, or fails.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The vault does not answer, or fails.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// An organization's people, in the order in which they joined, and its open invites.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct People {
    /// The members.
    pub people: Vec<PersonOfStaff>,
    /// The open invites.
    pub invites: Vec<OpenInvite>,
}

/// A member of an organization's staff.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonOfStaff {
    /// The account.
    pub account_id: AccountId,
    /// The person's name.
    pub name: String,
    /// The person's e-mail address.
    pub email: String,
    /// Their role in it.
    pub role: Role,
    /// When they joined.
    pub joined_at: DateTime<Utc>,
}

/// An unused invite. The link itself is not stored.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenInvite {
    /// The invite.
    pub invite_id: InviteId,
    /// The invited address.
    pub email: String,
    /// When the link expires.
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for PersonOfStaff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PersonOfStaff({})", self.account_id)
    }
}

impl std::fmt::Debug for OpenInvite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenInvite({})", self.invite_id)
    }
}

/// Returns the people of an organization, except forgotten ones.
pub async fn people(
    log: &EventLog,
    org: &OrgId,
    now: DateTime<Utc>,
) -> Result<People, PeopleError> {
    let stream = StreamId::new(org, AggregateType::Organization, org.as_str());
    let past = log.load(&stream).await?;
    let mut all = People {
        people: Vec::new(),
        invites: Vec::new(),
    };
    let Some(organization) = Organization::fold(&past) else {
        return Ok(all);
    };
    for member in organization.members() {
        if let Some((name, email)) = who(log, member.account_id).await? {
            all.people.push(PersonOfStaff {
                account_id: member.account_id,
                name,
                email,
                role: member.role,
                joined_at: member.since,
            });
        }
    }
    for invite in organization.invites() {
        if invite.works(now)
            && let Some(email) = unseal(
                log,
                &Binding::Invited(invite.account_id, invite.id.to_string()),
                &invite.email,
            )
            .await?
        {
            all.invites.push(OpenInvite {
                invite_id: invite.id.clone(),
                email,
                expires_at: invite.expires_at,
            });
        }
    }
    Ok(all)
}

/// The name and the address of an account.
async fn who(log: &EventLog, account: AccountId) -> Result<Option<(String, String)>, PeopleError> {
    let opened = log.first(&StreamId::of_account(account)).await?;
    let Some(Event::AccountRegistered(registered)) = opened.map(|opened| opened.event) else {
        return Ok(None);
    };
    let name = unseal(log, &Binding::Name(account), &registered.name).await?;
    let email = unseal(log, &Binding::Email(account), &registered.email).await?;
    Ok(name.zip(email))
}

async fn unseal(
    log: &EventLog,
    binding: &Binding,
    sealed: &Sealed,
) -> Result<Option<String>, PeopleError> {
    match log.vault().unseal(binding, sealed).await {
        Ok(text) => Ok(Some(text)),
        Err(VaultError::Forgotten) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
