//! Data kept about a person: sealed data from the log, the rest from the read models.

use std::io;

use chrono::{DateTime, Utc};
use domain::account::Account;
use event_log::{Binding, EventLog, VaultError};
use schemas::account::Tier;
use schemas::{AccountId, AggregateType, Log, OrgId, Recorded, SYSTEM_ORG, Sealed, StreamId};
use serde::Serialize;
use serde_json::Value;
use service::HttpError;
use sqlx::PgPool;

use super::json_object::JsonObjectWriter;
use super::rows::{Many, Membership, Pause, Place, Position, Rows};

/// A person's data, ready to be written.
pub(super) struct Gathering {
    log: EventLog,
    rows: Rows,
    own: Own,
}

/// The account itself.
#[derive(Serialize)]
struct Own {
    id: AccountId,
    name: Option<String>,
    email: Option<String>,
    /// The number that they have verified.
    phone: Option<String>,
    /// The number given at registration.
    named_phone: Option<String>,
    tier: Tier,
    created_at: Option<DateTime<Utc>>,
}

/// An event as the feeds show it.
#[derive(Serialize)]
struct Fact {
    #[serde(rename = "type")]
    event_type: String,
    time: DateTime<Utc>,
    data: Value,
}

impl Gathering {
    /// Loads the account.
    pub(super) async fn open(
        log: &EventLog,
        models: PgPool,
        account: AccountId,
    ) -> Result<Self, HttpError> {
        let away = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "An account cannot be read for its export");
            HttpError::unavailable("the event log is not available; try again in a moment")
        };
        let events = log.load(&StreamId::of_account(account)).await;
        let events = events.map_err(|error| away(&error))?;
        let known = Account::fold(&events).filter(Account::is_open);
        let known = known.ok_or(access::Refusal::InvalidToken)?;
        let own = own(log, &known, events.first()).await;
        Ok(Self {
            log: log.clone(),
            rows: Rows { models, account },
            own: own.map_err(|error| away(&error))?,
        })
    }

    /// Writes everything.
    pub(super) async fn write(
        self,
        object: &mut JsonObjectWriter,
        organizations: &[OrgId],
    ) -> io::Result<()> {
        object.field("account", &self.own)?;
        object.field("organizations", &organizations)?;
        self.many::<Membership>("circles", object).await?;
        self.many::<Place>("places", object).await?;
        self.many::<Pause>("pauses", object).await?;
        self.calls(object).await?;
        self.visits(object).await?;
        self.many::<Position>("positions", object).await?;
        object.finish().await
    }

    async fn many<T: Many>(&self, name: &str, object: &mut JsonObjectWriter) -> io::Result<()> {
        object.list(name);
        let mut after = None;
        loop {
            let some = T::some(&self.rows, after.take()).await;
            let some = some.map_err(io::Error::other)?;
            let Some(last) = some.last() else { break };
            after = Some(last.place());
            for one in &some {
                object.item(one).await?;
            }
        }
        object.end_list();
        Ok(())
    }

    /// Writes their calls for help, each with the responses to it. A call is also stored in
    /// organizations' streams. The one of persons is enough.
    async fn calls(&self, object: &mut JsonObjectWriter) -> io::Result<()> {
        object.list("sos");
        let mut after = 0;
        loop {
            let some = self
                .rows
                .calls_after(after)
                .await
                .map_err(io::Error::other)?;
            let Some(last) = some.last() else { break };
            after = last.sequence;
            for call in &some {
                let org = OrgId::from(SYSTEM_ORG);
                let stream = StreamId::new(&org, AggregateType::Sos, call.sos_id.as_str());
                let events = self.log.load(&stream).await.map_err(io::Error::other)?;
                for recorded in &events {
                    self.fact(recorded, object).await?;
                }
            }
        }
        object.end_list();
        Ok(())
    }

    /// Writes when they entered and left places.
    async fn visits(&self, object: &mut JsonObjectWriter) -> io::Result<()> {
        object.list("visits");
        let mut after = 0;
        loop {
            let some = self.rows.crossings_after(after).await;
            let some = some.map_err(io::Error::other)?;
            let Some(last) = some.last() else { break };
            after = *last;
            for sequence in &some {
                let found = self.log.get(Log::Events, sequence.unsigned_abs()).await;
                if let Some(recorded) = found.map_err(io::Error::other)? {
                    self.fact(&recorded, object).await?;
                }
            }
        }
        object.end_list();
        Ok(())
    }

    async fn fact(&self, recorded: &Recorded, object: &mut JsonObjectWriter) -> io::Result<()> {
        let data = self.log.reveal(&recorded.event).await;
        let fact = Fact {
            event_type: recorded.event.name().to_string(),
            time: recorded.time,
            data: data.map_err(io::Error::other)?,
        };
        object.item(&fact).await
    }
}

async fn own(
    log: &EventLog,
    account: &Account,
    first: Option<&Recorded>,
) -> Result<Own, VaultError> {
    let id = account.id;
    let phone = account.phone.as_ref();
    let named = account.named.as_ref().map(|named| &named.phone);
    Ok(Own {
        id,
        name: unsealed(log, Binding::Name(id), Some(&account.name)).await?,
        email: unsealed(log, Binding::Email(id), Some(&account.email)).await?,
        phone: unsealed(log, Binding::VerifiedPhone(id), phone).await?,
        named_phone: unsealed(log, Binding::NamedPhone(id), named).await?,
        tier: account.tier.as_ref().map_or(Tier::Free, |set| set.tier),
        created_at: first.map(|first| first.time),
    })
}

async fn unsealed(
    log: &EventLog,
    binding: Binding,
    sealed: Option<&Sealed>,
) -> Result<Option<String>, VaultError> {
    let Some(sealed) = sealed else {
        return Ok(None);
    };
    match log.vault().unseal(&binding, sealed).await {
        Ok(text) => Ok(Some(text)),
        Err(VaultError::Forgotten) => Ok(None),
        Err(error) => Err(error),
    }
}
