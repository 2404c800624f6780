//! Forgets what is stored of persons in organizations.

use domain::account::Email;
use domain::organization::{self, Organization};
use schemas::{AccountId, AggregateType, Event, OrgId};

use super::{address, load, stream, withdraw};
use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, LogError, Origin};

/// Events of organizations read at a time.
const PAGE: usize = 1_000;

/// Removes a person from all organizations, even as the last owner.
pub(crate) async fn forget_person<R>(
    commands: &Commands,
    origin: &Origin,
    account: AccountId,
) -> Result<(), CommandError<R>> {
    for org in find_organizations(commands, account).await? {
        let stream = stream(&org);
        let left = commands.execute(origin, &stream, Past::Whole, |past, _| {
            let organization = Organization::fold(past);
            let gone = organization.and_then(|known| organization::forget(&known, account));
            Ok(Decision::new((), gone))
        });
        left.await?;
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
    for invite in &noted {
        let past = load(commands, &invite.org).await?;
        let hash = address::email_hash(commands, &invite.org, email);
        let organization = Organization::fold(&past);
        let open = organization
            .as_ref()
            .and_then(|known| known.invite_of(&hash));
        if let Some(open) = open {
            match withdraw(commands, origin, &invite.org, &open.id, None).await {
                // Another process was faster.
                Ok(_) | Err(CommandError::Refused(_) | CommandError::OtherRequest) => {}
                Err(CommandError::Log(error)) => return Err(error),
            }
        }
        address::let_go(commands, invite.account).await?;
    }
    Ok(noted.len())
}
