//! Accounts as stored in the log.

use domain::account::{Account, Email, Phone};
use event_log::{Binding, Expected, VaultError, Write};
use schemas::account::{PhoneNamed, Registered};
use schemas::claim::{Claimed, Released};
use schemas::{AccountId, Event, Recorded, Sealed, StreamId};

use super::password_queue::Visitor;
use crate::commands::behind;
use crate::{App, Commands, LogError, Origin};

/// The kind of claim by which an e-mail address belongs to one account.
const EMAIL: &str = "email";
/// The kind of claim by which a verified phone number belongs to one account.
const PHONE: &str = "phone";

/// A random positive number below 2^53, which every JSON reader keeps exactly.
pub(crate) fn new_account_id(commands: &Commands) -> AccountId {
    let bits = u64::from_be_bytes(commands.random.bytes()) >> 11;
    AccountId(bits.max(1))
}

/// Returns the holder of a claimed value.
pub(crate) fn holder(claim: &Recorded) -> Option<AccountId> {
    match &claim.event {
        Event::ClaimClaimed(Claimed { holder }) => holder.parse().ok().map(AccountId),
        _ => None,
    }
}

/// A value that one account may hold, in its current state.
pub(crate) struct Claim {
    pub(crate) stream: StreamId,
    last: Option<Recorded>,
}

impl Claim {
    async fn load(commands: &Commands, kind: &str, value: &str) -> Result<Self, LogError> {
        let stream = commands.log().claim(kind, value);
        let last = commands.log().last(&stream).await?;
        Ok(Self { stream, last })
    }

    pub(crate) async fn of_email(commands: &Commands, email: &Email) -> Result<Self, LogError> {
        Self::load(commands, EMAIL, email.as_str()).await
    }

    pub(crate) async fn of_phone(commands: &Commands, phone: &Phone) -> Result<Self, LogError> {
        Self::load(commands, PHONE, phone.as_str()).await
    }

    pub(crate) fn holder(&self) -> Option<AccountId> {
        self.last.as_ref().and_then(holder)
    }

    /// The sequence that the next event of the claim expects.
    pub(crate) fn expected(&self) -> Expected {
        behind(self.last.as_slice())
    }

    /// Returns the write that releases the value, if the account holds it.
    pub(crate) fn given_back_by(
        &self,
        commands: &Commands,
        origin: &Origin,
        id: AccountId,
    ) -> Option<Write> {
        self.holder().filter(|holder| *holder == id)?;
        let holder = id.to_string();
        let event = Event::ClaimReleased(Released { holder });
        let (stream, expected) = (self.stream.clone(), self.expected());
        Some(commands.write(origin, commands.now(), stream, expected, vec![event]))
    }

    /// Returns the write that claims the value for the account.
    pub(crate) fn taken_by(&self, commands: &Commands, origin: &Origin, id: AccountId) -> Write {
        let holder = id.to_string();
        let event = Event::ClaimClaimed(Claimed { holder });
        let (stream, expected) = (self.stream.clone(), self.expected());
        commands.write(origin, commands.now(), stream, expected, vec![event])
    }
}

/// Loads an account that can be signed in to.
pub(crate) async fn load(commands: &Commands, id: AccountId) -> Result<Option<Account>, LogError> {
    let events = commands.log().load(&StreamId::of_account(id)).await?;
    Ok(Account::fold(&events).filter(Account::is_open))
}

/// Unseals a value of an account; `None` if the account was forgotten.
pub(crate) async fn unseal(
    commands: &Commands,
    binding: &Binding,
    sealed: &Sealed,
) -> Result<Option<String>, LogError> {
    let vault = commands.log().vault();
    match vault.unseal(binding, sealed).await {
        Ok(text) => Ok(Some(text)),
        Err(VaultError::Forgotten) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether this is the password of an account.
pub(super) async fn is_password(
    app: &App,
    visitor: Visitor,
    account: &Account,
    password: String,
) -> Result<bool, LogError> {
    let binding = Binding::Password(account.id);
    let hash = unseal(&app.commands, &binding, &account.password_hash).await?;
    let passwords = app.accounts.passwords();
    Ok(passwords.verify_for(visitor, password, hash).await?)
}

/// Returns the write that releases the number that an account holds, if it holds one.
pub(crate) async fn phone_given_back(
    commands: &Commands,
    origin: &Origin,
    account: &Account,
) -> Result<Option<Write>, LogError> {
    let Some(sealed) = &account.phone else {
        return Ok(None);
    };
    let phone = unseal(commands, &Binding::VerifiedPhone(account.id), sealed).await?;
    let Some(phone) = phone.and_then(|phone| Phone::parse(&phone).ok()) else {
        return Ok(None);
    };
    let claim = Claim::of_phone(commands, &phone).await?;
    Ok(claim.given_back_by(commands, origin, account.id))
}

/// An account that is about to be opened.
pub(crate) struct Opening<'o> {
    pub(crate) id: AccountId,
    pub(crate) name: &'o str,
    pub(crate) email: &'o Email,
    pub(crate) password_hash: &'o str,
    pub(crate) phone: Option<&'o Phone>,
}

impl Opening<'_> {
    /// Returns the writes that create the account and claim the address, which must be free.
    pub(crate) async fn writes(
        &self,
        commands: &Commands,
        origin: &Origin,
        email: &Claim,
    ) -> Result<Vec<Write>, LogError> {
        let stream = StreamId::of_account(self.id);
        let events = self.events(commands).await?;
        Ok(vec![
            commands.write(origin, commands.now(), stream, Expected::Empty, events),
            email.taken_by(commands, origin, self.id),
        ])
    }

    async fn events(&self, commands: &Commands) -> Result<Vec<Event>, LogError> {
        let (vault, id) = (commands.log().vault(), self.id);
        let hash = self.password_hash;
        let mut events = vec![Event::AccountRegistered(Registered {
            account_id: self.id,
            name: vault.seal(&Binding::Name(id), self.name).await?,
            email: vault.seal(&Binding::Email(id), self.email.as_str()).await?,
            password_hash: vault.seal(&Binding::Password(id), hash).await?,
        })];
        if let Some(phone) = self.phone {
            events.push(Event::AccountPhoneNamed(PhoneNamed {
                account_id: self.id,
                phone: vault.seal(&Binding::NamedPhone(id), phone.as_str()).await?,
            }));
        }
        Ok(events)
    }
}
