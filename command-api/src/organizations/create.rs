//! Founds an organization, with its owner's account where one is named.

use domain::account::Email;
use domain::{FieldError, organization};
use event_log::{AppendError, Commit, Expected, Owner, Write};
use schemas::account::Registered;
use schemas::claim::Claimed;
use schemas::{AccountId, AggregateType, Event, OrgId, Recorded, StreamId};
use serde::Serialize;

use crate::accounts::password;
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
        match commands.log().commit(founding.into_commit()).await {
            Err(AppendError::Conflict) => {}
            result => {
                let position = result?;
                let answer = NewOrganization {
                    org_id,
                    owner_password,
                };
                return Ok(Done { answer, position });
            }
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
        let claim = self.commands.log().claim("email", email.as_str());
        let last = self.commands.log().last(&claim).await?;
        if let Some(holder) = last.as_ref().and_then(holder) {
            self.events.push(organization::add_owner(holder));
            return Ok(None);
        }
        let account_id = new_account_id(self.commands);
        let password = self.commands.random.letters(PASSWORD_LETTERS);
        let registered = self.registered(account_id, email, &password).await?;
        let account = account_stream(account_id);
        self.write(account, Expected::Empty, registered);
        let holder = account_id.to_string();
        let expected = Expected::after(last.map(|last| last.sequence));
        self.write(claim, expected, Event::ClaimClaimed(Claimed { holder }));
        self.events.push(organization::add_owner(account_id));
        Ok(Some(password))
    }

    async fn registered(
        &self,
        account_id: AccountId,
        email: &Email,
        password: &str,
    ) -> Result<Event, LogError> {
        let hash = password::hash(self.commands, password.to_owned()).await?;
        let (vault, owner) = (self.commands.log().vault(), Owner::Account(account_id));
        Ok(Event::AccountRegistered(Registered {
            account_id,
            // Nobody has told the name; the owner can change it.
            name: vault.seal(&owner, email.as_str()).await?,
            email: vault.seal(&owner, email.as_str()).await?,
            password_hash: vault.seal(&owner, &hash).await?,
        }))
    }

    fn write(&mut self, stream: StreamId, expected: Expected, event: Event) {
        let now = self.commands.now();
        let events = vec![self.commands.new_event(self.origin, now, event)];
        self.others.push(Write {
            stream,
            expected,
            events,
        });
    }

    fn into_commit(self) -> Commit {
        let now = self.commands.now();
        let new_event = |event| self.commands.new_event(self.origin, now, event);
        let mut writes = self.others;
        writes.push(Write {
            stream: self.stream,
            expected: Expected::Empty,
            events: self.events.into_iter().map(new_event).collect(),
        });
        Commit { writes }
    }
}

/// Who holds a claimed address.
fn holder(claim: &Recorded) -> Option<AccountId> {
    match &claim.event {
        Event::ClaimClaimed(Claimed { holder }) => holder.parse().ok().map(AccountId),
        _ => None,
    }
}

/// A random positive number below 2^53, which every JSON reader keeps exactly.
fn new_account_id(commands: &Commands) -> AccountId {
    let bits = u64::from_be_bytes(commands.random.bytes()) >> 11;
    AccountId(bits.max(1))
}

fn account_stream(id: AccountId) -> StreamId {
    let org = OrgId::from(event_log::SYSTEM_ORG);
    StreamId::new(&org, AggregateType::Account, id.to_string())
}
