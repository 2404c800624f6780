//! Founds an organization, with its owner's account if one is named.

use domain::account::Email;
use domain::{FieldError, organization};
use event_log::{Expected, Write};
use schemas::{Event, OrgId};

use super::invite::{Draft, NewInvite, finding};
use super::{address, stream};
use crate::accounts::Passwords;
use crate::accounts::stored::{Claim, Opening, new_account_id};
use crate::commands::until_written;
use crate::{CommandError, Commands, Done, LogError, Origin, PeopleSettings};

/// Characters of a generated password: more than 118 bits.
const PASSWORD_LETTERS: usize = 20;

/// A newly founded organization.
#[derive(Clone)]
pub struct NewOrganization {
    /// The organization.
    pub org_id: OrgId,
    /// How its owner gets access, if one was named.
    pub owner: Option<NewOwner>,
}

/// How an owner gets access.
#[derive(Clone)]
pub enum NewOwner {
    /// The address had no account: one was opened, with this password.
    Password(String),
    /// The address has an account. It is unknown whose, so its holder must agree, by a link that
    /// only the true owner is given.
    Invite(NewInvite),
}

impl std::fmt::Debug for NewOrganization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewOrganization({})", self.org_id)
    }
}

/// Founds an organization. An owner without an account gets one with a password that is shown once;
/// an owner who has one gets an invite. All of it is written, or nothing.
pub async fn create(
    commands: &Commands,
    origin: &Origin,
    name: &str,
    owner: Option<&Email>,
    settings: &PeopleSettings,
) -> Result<Done<NewOrganization>, CommandError<FieldError>> {
    let org_id = OrgId::from(commands.random.id());
    let created = organization::create(org_id.clone(), name).map_err(CommandError::Refused)?;
    let attempt = || async {
        let mut founding = Founding {
            commands,
            origin,
            org: &org_id,
            events: vec![created.clone()],
            others: Vec::new(),
        };
        let owner = match owner {
            Some(email) => Some(founding.add_owner(email, settings).await?),
            None => None,
        };
        let position = commands.commit(founding.into_writes()).await?;
        Ok(position.map(|position| {
            let org_id = org_id.clone();
            let answer = NewOrganization { org_id, owner };
            Done { answer, position }
        }))
    };
    until_written(attempt).await
}

/// The writes that found an organization.
struct Founding<'c> {
    commands: &'c Commands,
    origin: &'c Origin,
    org: &'c OrgId,
    events: Vec<Event>,
    others: Vec<Write>,
}

impl Founding<'_> {
    /// Adds the owner with an account if the address has none; otherwise invites.
    async fn add_owner(
        &mut self,
        email: &Email,
        settings: &PeopleSettings,
    ) -> Result<NewOwner, LogError> {
        let claim = Claim::of_email(self.commands, email).await?;
        if claim.holder().is_some() {
            let invite = self.invite_owner(email, settings).await?;
            return Ok(NewOwner::Invite(invite));
        }
        self.open_account(email, &claim)
            .await
            .map(NewOwner::Password)
    }

    async fn invite_owner(
        &mut self,
        email: &Email,
        settings: &PeopleSettings,
    ) -> Result<NewInvite, LogError> {
        let (commands, org) = (self.commands, self.org);
        let holder = address::holder(commands, email).await?;
        let drafting = Draft::new(commands, org, email, holder, None, settings);
        let Draft { invited, code } = drafting.await?;
        let account = invited.account_id;
        let found = finding(commands, self.origin, org, email, &code, account);
        self.others.extend(found.await?);
        let expires_at = invited.expires_at;
        self.events.push(Event::OrganizationMemberInvited(invited));
        Ok(NewInvite { code, expires_at })
    }

    async fn open_account(&mut self, email: &Email, free: &Claim) -> Result<String, LogError> {
        let id = new_account_id(self.commands);
        let password = self.commands.random.letters(PASSWORD_LETTERS);
        let random = &self.commands.random;
        let hashing = Passwords::default();
        let hash = hashing.hash(random, password.clone());
        let opening = Opening {
            id,
            // The name is unknown, and others will see this value.
            name: "Owner",
            email,
            password_hash: &hash.await?,
            phone: None,
        };
        let writes = opening.writes(self.commands, self.origin, free).await?;
        self.others.extend(writes);
        self.events.push(organization::add_owner(id));
        Ok(password)
    }

    fn into_writes(self) -> Vec<Write> {
        let (commands, now) = (self.commands, self.commands.now());
        let mut writes = self.others;
        let stream = stream(self.org);
        writes.push(commands.write(self.origin, now, stream, Expected::Empty, self.events));
        writes
    }
}
