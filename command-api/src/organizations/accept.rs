//! Accepting an invite: with its link, by the account that has the address.

use chrono::{DateTime, Utc};
use domain::account::{Email, Registration};
use domain::organization::{self, CannotJoin, Invite, Joining, Organization};
use event_log::{Binding, VaultError, Write};
use schemas::claim::Claimed;
use schemas::{AccountId, Event, OrgId, Recorded};

use super::{address, load, stream};
use crate::accounts::Passwords;
use crate::accounts::stored::{Claim, Opening};
use crate::commands::{behind, until_written};
use crate::{CommandError, Commands, Done, LogError, Origin};

/// The invitation of a link.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// The organization.
    pub org: OrgId,
    /// Its name.
    pub organization: String,
    /// The invited address.
    pub email: Email,
    /// The account that has the address.
    pub holder: Option<AccountId>,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
}

/// Who accepts.
#[derive(Clone, Copy, Debug)]
pub enum Joiner<'j> {
    /// Somebody who has signed in to an account.
    Account(AccountId),
    /// Somebody without one, who opens it while joining.
    New(&'j Registration),
}

/// Somebody who has just joined.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The organization.
    pub org: OrgId,
    /// The account.
    pub account: AccountId,
}

/// What a code leads to.
struct Found {
    past: Vec<Recorded>,
    organization: Organization,
    invite: Invite,
    email: Email,
    /// The current claim of the address.
    claim: Claim,
}

/// Returns the invitation of a link, for its holder.
pub async fn look(commands: &Commands, code: &str) -> Result<Invitation, CommandError<CannotJoin>> {
    let found = find(commands, code).await?;
    if !found.invite.works(commands.now()) {
        return Err(CommandError::Refused(CannotJoin::Expired));
    }
    Ok(Invitation {
        org: found.organization.id,
        organization: found.organization.name,
        email: found.email,
        holder: found.claim.holder(),
        expires_at: found.invite.expires_at,
    })
}

/// Joins by a link, once.
pub async fn accept(
    commands: &Commands,
    origin: &Origin,
    passwords: &Passwords,
    code: &str,
    joiner: Joiner<'_>,
) -> Result<Done<Joined>, CommandError<CannotJoin>> {
    let opening = match joiner {
        Joiner::Account(_) => None,
        Joiner::New(registration) => {
            let password = registration.password.clone();
            let hash = passwords.hash(&commands.random, password).await;
            Some((registration, hash.map_err(LogError::from)?))
        }
    };
    let attempt = || async {
        let found = find(commands, code).await?;
        let joining = match joiner {
            Joiner::Account(account) => Joining::Account(account),
            Joiner::New(_) => Joining::New(found.invite.account_id),
        };
        let account = joining.account();
        let (now, hash) = (commands.now(), &found.invite.code_hash);
        let joined = organization::accept(
            &found.organization,
            hash,
            joining,
            found.claim.holder(),
            now,
        );
        let joined = joined.map_err(CommandError::Refused)?;
        let mut writes = match &opening {
            Some((registration, hash)) => {
                open(commands, origin, &found, registration, hash).await?
            }
            None => Vec::new(),
        };
        let org = found.organization.id;
        writes.push(commands.write(origin, now, stream(&org), behind(&found.past), joined));
        let Some(position) = commands.commit(writes).await? else {
            return Ok(None);
        };
        // No longer of use, unless it is the account's own.
        address::let_go(commands, found.invite.account_id).await?;
        let answer = Joined { org, account };
        Ok(Some(Done { answer, position }))
    };
    until_written(attempt).await
}

/// Returns the writes that create the account of an invite.
async fn open(
    commands: &Commands,
    origin: &Origin,
    found: &Found,
    registration: &Registration,
    password_hash: &str,
) -> Result<Vec<Write>, LogError> {
    let opening = Opening {
        id: found.invite.account_id,
        name: &registration.name,
        // The address of the invite, whatever else was sent.
        email: &found.email,
        password_hash,
        phone: None,
    };
    opening.writes(commands, origin, &found.claim).await
}

async fn find(commands: &Commands, code: &str) -> Result<Found, CommandError<CannotJoin>> {
    let unknown = || CommandError::Refused(CannotJoin::Unknown);
    let log = commands.log();
    let last = log.last(&log.claim(address::CODE, code)).await?;
    let org = last.and_then(|last| match last.event {
        Event::ClaimClaimed(Claimed { holder }) => Some(OrgId::from(holder)),
        _ => None,
    });
    let past = load(commands, &org.ok_or_else(unknown)?).await?;
    let organization = Organization::fold(&past).ok_or_else(unknown)?;
    let invite = organization.invite_by_code(&address::code_hash(commands, code));
    let invite = invite.ok_or_else(unknown)?.clone();
    let binding = Binding::Invited(invite.account_id, invite.id.to_string());
    let email = match log.vault().unseal(&binding, &invite.email).await {
        Err(VaultError::Forgotten) => return Err(unknown()),
        unsealed => unsealed?,
    };
    let email = Email::parse(&email).map_err(|_| unknown())?;
    let claim = Claim::of_email(commands, &email).await?;
    Ok(Found {
        past,
        organization,
        invite,
        email,
        claim,
    })
}
