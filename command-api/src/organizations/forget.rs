//! Forgets what is stored of persons in organizations.

use domain::account::Email;
use domain::organization::{self, Organization, Refusal};
use schemas::{AccountId, AggregateType, Event, OrgId};

use super::{address, stream};
use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, LogError, Origin};

/// Events of organizations read at a time.
const PAGE: usize = 1_000;

/// Removes a person from all organizations, even as the last owner, and with them the open invites
/// that they made.
pub(crate) async fn forget_person<R>(
    commands: &Commands,
    origin: &Origin,
    account: AccountId,
) -> Result<(), CommandError<R>> {
    for org in find_organizations(commands, account).await? {
        let stream = stream(&org);
        let left = commands.execute(origin, &stream, Past::Whole, |past, _| {
            let Some(organization) = Organization::fold(past) else {
                return Ok(Decision::new(Vec::new(), None));
            };
            let invites = organization.invites_by(account);
            let sealed_for: Vec<_> = invites.map(|invite| invite.account_id).collect();
            let gone = organization::forget(&organization, account);
            Ok(Decision::new(sealed_for, gone))
        });
        address::let_go_all(commands, left.await?.answer).await?;
    }
    Ok(())
}

/// The organizations that a person ever joined.
async fn find_organizations(
    commands: &Commands,
    account: AccountId,
) -> Result<Vec<OrgId>, LogError> {
    let mut found: Vec<OrgId> = Vec::new();
    let (mut after, mut complete) = (0, false);
    while !complete {
        let kind = AggregateType::Organization;
        let page = commands.log().page_of_kind(kind, after, PAGE).await?;
        for recorded in page.events() {
            if let Event::OrganizationMemberAdded(added) = &recorded.event
                && added.account_id == account
                && !found.contains(&recorded.stream.org)
            {
                found.push(recorded.stream.org.clone());
            }
        }
        (after, complete) = (page.through, page.complete);
    }
    Ok(found)
}

/// Withdraws all invites of an address and makes what is stored of them unreadable. Returns how
/// many it ever had.
pub async fn forget_address(
    commands: &Commands,
    origin: &Origin,
    email: &Email,
) -> Result<usize, LogError> {
    let noted = address::noted(commands, email).await?;
    for org in &noted.orgs {
        withdraw_invite(commands, origin, org, email).await?;
    }
    address::let_go_all(commands, noted.accounts).await?;
    Ok(noted.invites)
}

/// Withdraws the open invite of an address to an organization, if there is one: at most one is open
/// at a time.
async fn withdraw_invite(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    email: &Email,
) -> Result<(), LogError> {
    let (stream, hash) = (stream(org), address::email_hash(commands, org, email));
    let withdrawn = commands.execute(origin, &stream, Past::Whole, |past, _| {
        let organization = Organization::fold(past).ok_or(Refusal::Nobody)?;
        let open = organization.invite_of(&hash).ok_or(Refusal::Nobody)?;
        let event = organization::withdraw(&organization, &open.id, None)?;
        Ok(Decision::new((), Some(event)))
    });
    let withdrawn: Result<_, CommandError<Refusal>> = withdrawn.await;
    match withdrawn {
        Ok(_) | Err(CommandError::Refused(_) | CommandError::OtherRequest) => Ok(()),
        Err(CommandError::Log(error)) => Err(error),
    }
}
