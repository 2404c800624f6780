//! Persons: their access tokens, and how much their tier lets them do in an hour.
//!
//! A token is checked locally: by its signature, its expiry and the events of its account, which
//! every process folds itself.

mod account_directory;
mod extract;
mod meters;
mod settings;
mod token;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::checkpoint::Encoder;
use event_log::{EventLog, Fold, FoldCheckpoint, Owner, ReadError, Vault};
use schemas::account::Tier;
use schemas::{AccountId, Event, Recorded, TokenId};
use service::RequestContext;

use crate::limit::Policy;
use crate::{Access, Refusal};

pub use extract::{AccountToken, EndingToken, UncountedToken};
pub use settings::PersonSettings;

use account_directory::{AccountDirectory, Allowance};
use meters::Meters;
use token::{Claims, Signing};

/// The caller: the holder of a valid access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The person's account.
    pub account_id: AccountId,
    /// The token's id.
    pub token_id: TokenId,
    /// When the token expires.
    pub expires_at: DateTime<Utc>,
    /// How often the password had been changed when the token was created.
    passwords: u32,
}

/// The hourly limits of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowances {
    /// API requests.
    pub requests: u32,
    /// Positions.
    pub locations: u32,
}

/// A newly created token.
#[derive(Clone)]
pub struct NewToken {
    /// The token itself.
    pub access_token: String,
    /// Its lifetime in seconds.
    pub expires_in: u64,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NewToken(…)")
    }
}

/// Everything this process knows of persons.
pub(crate) struct Persons {
    directory: AccountDirectory,
    vault: Vault,
    meters: Meters,
    signing: Signing,
    settings: PersonSettings,
}

impl Persons {
    /// Restores persons from their last checkpoint.
    pub(crate) async fn noted(
        log: &EventLog,
        settings: PersonSettings,
    ) -> Result<(Self, FoldCheckpoint), ReadError> {
        let checkpoint = FoldCheckpoint::open(log, Fold::Accounts, account_directory::FORM).await?;
        let noted = checkpoint.read().await.map(|(_, accounts)| accounts);
        let persons = Self {
            directory: AccountDirectory::beginning(noted.unwrap_or_default()),
            vault: log.vault().clone(),
            meters: Meters::default(),
            signing: Signing::new(log.keyring().token_key()),
            settings,
        };
        Ok((persons, checkpoint))
    }

    /// Encodes everything known, to be saved.
    pub(crate) fn encode(&self, encoder: Encoder) -> Result<Vec<u8>, String> {
        self.directory.encode(encoder)
    }

    /// The sequence of the last account event that was applied.
    pub(crate) fn through(&self) -> u64 {
        self.directory.last_sequence()
    }

    pub(crate) fn is_forgotten(&self, account: AccountId) -> bool {
        self.directory.status(account).forgotten
    }

    /// Applies an account event.
    pub(crate) fn apply(&self, recorded: &Recorded, now: DateTime<Utc>) {
        if let Event::AccountForgotten(forgotten) = &recorded.event {
            self.vault.let_go(&Owner::Account(forgotten.account_id));
        }
        self.directory.apply(recorded, now);
    }

    fn allowances(&self, allowance: Allowance) -> Allowances {
        let (requests, locations) = match allowance.tier {
            Tier::Free => (100, 30),
            Tier::Family => (1_000, 120),
            Tier::FamilyPlus => (10_000, 360),
            Tier::Enterprise => (
                self.settings.enterprise_requests,
                self.settings.enterprise_locations,
            ),
        };
        Allowances {
            requests: allowance.requests.unwrap_or(requests),
            locations: allowance.locations.unwrap_or(locations),
        }
    }
}

impl Access {
    /// Creates a token. `passwords` is how often the account's password has been changed: tokens of
    /// an earlier password end.
    ///
    /// # Panics
    /// If another library than ours signs the tokens of this process.
    pub fn make_token(&self, account: AccountId, token: &TokenId, passwords: u32) -> NewToken {
        let persons = self.persons();
        let now = self.clock().now();
        let lifetime = persons.settings.token_seconds;
        let until = now + TimeDelta::seconds(i64::from(lifetime));
        let claims = Claims::new(account, token, passwords, (now, until));
        #[expect(
            clippy::expect_used,
            reason = "numbers and short texts have a JSON form, and any key signs under HS256"
        )]
        let access_token = persons
            .signing
            .sign(&claims)
            .expect("a token can be signed");
        NewToken {
            access_token,
            expires_in: u64::from(lifetime),
        }
    }

    /// Returns the owner of a valid token, without counting anything.
    pub fn authenticate_person(&self, presented: &str) -> Result<Person, Refusal> {
        let person = self.recognize_person(presented)?;
        if self.person_is_good(&person) {
            Ok(person)
        } else {
            Err(Refusal::InvalidToken)
        }
    }

    /// Returns the owner of a token that was issued here and has not expired; it may still have
    /// been revoked, or its account be gone.
    fn recognize_person(&self, presented: &str) -> Result<Person, Refusal> {
        let claims = self.persons().signing.verify(presented);
        let person = claims.and_then(|claims| {
            Some(Person {
                account_id: claims.account()?,
                token_id: claims.token(),
                expires_at: claims.expires_at()?,
                passwords: claims.passwords(),
            })
        });
        person
            .filter(|person| person.expires_at > self.clock().now())
            .ok_or(Refusal::InvalidToken)
    }

    /// Whether the token is still valid: not expired, not signed out, of the current password and
    /// of an account that was not forgotten. Cheap, for connections that outlive their first
    /// request.
    pub fn person_is_good(&self, person: &Person) -> bool {
        let directory = &self.persons().directory;
        let status = directory.status(person.account_id);
        person.expires_at > self.clock().now()
            && !status.forgotten
            && person.passwords >= status.passwords
            && !directory.is_signed_out(&person.token_id)
    }

    /// The sequence of the last account event that this process has applied: all account events up
    /// to it are in effect here.
    pub fn accounts_seen(&self) -> u64 {
        self.persons().through()
    }

    /// The hourly limits of an account.
    pub fn allowances(&self, account: AccountId) -> Allowances {
        let persons = self.persons();
        persons.allowances(persons.directory.status(account).allowance)
    }

    /// Counts a request of a person, and adds the state of the limit to its response.
    pub async fn count_request(
        &self,
        person: &Person,
        request: &RequestContext,
    ) -> Result<(), Refusal> {
        let quota = self.allowances(person.account_id).requests;
        self.count_person(person, Policy::Requests, quota, 1, request)
            .await
    }

    /// Counts the given number of positions of a person as a whole, and adds the state of the limit
    /// to the response. More than [`Allowances::locations`] never fit: the caller has to report
    /// that first.
    pub async fn count_positions(
        &self,
        person: &Person,
        positions: u32,
        request: &RequestContext,
    ) -> Result<(), Refusal> {
        let quota = self.allowances(person.account_id).locations;
        self.count_person(person, Policy::Locations, quota, positions, request)
            .await
    }

    async fn count_person(
        &self,
        person: &Person,
        policy: Policy,
        quota: u32,
        cost: u32,
        request: &RequestContext,
    ) -> Result<(), Refusal> {
        let (limiter, meters) = (self.limiter(), &self.persons().meters);
        let counter = meters.counter(limiter, person.account_id, policy);
        let decision = limiter.check(&counter, quota, cost).await;
        decision.announce(request);
        match decision.retry_after {
            None => Ok(()),
            Some(retry_after) => Err(Refusal::AllowanceUsedUp {
                policy,
                retry_after,
            }),
        }
    }
}
