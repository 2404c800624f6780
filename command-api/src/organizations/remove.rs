//! Removing somebody from an organization's people, and withdrawing invites.

use domain::account::Email;
use domain::organization::{self, Organization, Refusal};
use schemas::{AccountId, InviteId, OrgId};

use super::{address, load, stream};
use crate::accounts::stored;
use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, Done, LogError, Origin};

/// Removes somebody on behalf of a staff member or of the operator (`None`), or lets them leave.
/// The open invites that they made end too.
pub async fn remove(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    account: AccountId,
    by: Option<AccountId>,
) -> Result<Done<()>, CommandError<Refusal>> {
    let forgotten = find_forgotten(commands, org, account).await?;
    let stream = stream(org);
    let removed = commands.execute(origin, &stream, Past::Whole, |past, _| {
        let organization = Organization::fold(past).ok_or(Refusal::Nobody)?;
        let event = organization::remove(&organization, account, by, &forgotten)?;
        let ended = organization.invites_by(account);
        let sealed_for: Vec<_> = ended.map(|invite| invite.account_id).collect();
        Ok(Decision::new(sealed_for, Some(event)))
    });
    let Done { answer, position } = removed.await?;
    address::let_go_all(commands, answer).await?;
    Ok(Done {
        answer: (),
        position,
    })
}

/// Returns the forgotten among the others of an organization, up to the first who is not forgotten.
/// (A forgotten person leaves; this was not always so.)
async fn find_forgotten(
    commands: &Commands,
    org: &OrgId,
    but: AccountId,
) -> Result<Vec<AccountId>, LogError> {
    let organization = Organization::fold(&load(commands, org).await?);
    let mut forgotten = Vec::new();
    for member in organization.iter().flat_map(Organization::members) {
        if member.account_id == but {
            continue;
        }
        if stored::load(commands, member.account_id).await?.is_some() {
            break;
        }
        forgotten.push(member.account_id);
    }
    Ok(forgotten)
}

/// Withdraws an invite.
pub async fn withdraw(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    invite: &InviteId,
    by: Option<AccountId>,
) -> Result<Done<()>, CommandError<Refusal>> {
    let stream = stream(org);
    let withdrawn = commands.execute(origin, &stream, Past::Whole, |past, _| {
        let organization = Organization::fold(past).ok_or(Refusal::Nobody)?;
        let mut invites = organization.invites().iter();
        let sealed_for = invites.find(|open| open.id == *invite);
        let sealed_for = sealed_for.ok_or(Refusal::Nobody)?.account_id;
        let event = organization::withdraw(&organization, invite, by)?;
        Ok(Decision::new(sealed_for, Some(event)))
    });
    let withdrawn = withdrawn.await?;
    address::let_go(commands, withdrawn.answer).await?;
    Ok(withdrawn.map(drop))
}

/// Removes the holder of an address, or withdraws their invite.
pub async fn remove_address(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    email: &Email,
) -> Result<Done<()>, CommandError<Refusal>> {
    let nobody = || CommandError::Refused(Refusal::Nobody);
    let organization = Organization::fold(&load(commands, org).await?);
    let organization = organization.ok_or_else(nobody)?;
    let holder = stored::Claim::of_email(commands, email).await?.holder();
    if let Some(holder) = holder.filter(|holder| organization.has(*holder)) {
        return remove(commands, origin, org, holder, None).await;
    }
    let hash = address::email_hash(commands, org, email);
    let invite = organization.invite_of(&hash).ok_or_else(nobody)?;
    withdraw(commands, origin, org, &invite.id, None).await
}
