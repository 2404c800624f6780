//! Founds an organization, with its owner's account where one is named.

use domain::account::Email;
use domain::{FieldError, organization};
use event_log::{AppendError, Expected, Write};
use schemas::{AggregateType, Event, OrgId, StreamId};
use serde::Serialize;

use crate::accounts::stored::{Claim, Opening, new_account_id};
use crate::commands::ATTEMPTS;
use crate::{CommandError, Commands, Done, LogError, Origin};

/// Characters of a generated password: more than 118 bits.
const PASSWORD_LETTERS: usize = 20;

/// An organization that was just founded.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewOrganization {
    /// The organization.
    pub org_id: OrgId,
    /// The owner's password, where the account was made along with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_password: Option<String>,
}

impl std::fmt::Debug for NewOrganization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewOrganization({})", self.org_id)
    }
}

/// Founds an organization. An owner without an account gets one with a password that is shown
/// once; an owner who has one keeps it. All of it comes about, or nothing.
pub async fn create(
    commands: &Commands,
    origin: &Origin,
    name: &str,
    owner: Option<&Email>,
) -> Result<Done<NewOrganization>, CommandError<FieldError>> {
    let org_id = OrgId::from(commands.random.id());
    let created = organization::create(org_id.clone(), name).map_err(CommandError::Refused)?;
    for _ in 0..ATTEMPTS {
        let mut founding = Founding::new(commands, origin, &org_id, created.clone());
        let owner_password = match owner {
            Some(email) => founding.add_owner(email).await?,
            None => None,
        };
        if let Some(position) = commands.commit(founding.into_writes()).await? {
            let answer = NewOrganization {
                org_id,
                owner_password,
            };
            return Ok(Done { answer, position });
        }
    }
    Err(AppendError::Conflict.into())
}

/// What is written when an organization is founded.
struct Founding<'c> {
    commands: &'c Commands,
    origin: &'c Origin,
    stream: StreamId,
    events: Vec<Event>,
    others: Vec<Write>,
}

impl<'c> Founding<'c> {
    fn new(commands: &'c Commands, origin: &'c Origin, org: &OrgId, created: Event) -> Self {
        Self {
            commands,
            origin,
            stream: StreamId::new(org, AggregateType::Organization, org.as_str()),
            events: vec![created],
            others: Vec::new(),
        }
    }

    /// Adds the owner, with an account where the address has none; answers with its password.
    async fn add_owner(&mut self, email: &Email) -> Result<Option<String>, LogError> {
        let claim = Claim::of_email(self.commands, email).await?;
        if let Some(holder) = claim.holder() {
            self.events.push(organization::add_owner(holder));
            return Ok(None);
        }
        let id = new_account_id(self.commands);
        let password = self.commands.random.letters(PASSWORD_LETTERS);
        let hashing = &self.commands.passwords;
        let hash = hashing.hash(&self.commands.random, password.clone());
        let opening = Opening {
            id,
            // Nobody has told the name, and others will see what stands here.
            name: "Owner",
            email,
            password_hash: &hash.await?,
            phone: None,
        };
        let writes = opening.writes(self.commands, self.origin, &claim).await?;
        self.others.extend(writes);
        self.events.push(organization::add_owner(id));
        Ok(Some(password))
    }

    fn into_writes(self) -> Vec<Write> {
        let (commands, now) = (self.commands, self.commands.now());
        let mut writes = self.others;
        writes.push(commands.write(self.origin, now, self.stream, Expected::Empty, self.events));
        writes
    }
}
