//! What is kept of a person: from the log what is sealed there, from the read models the rest.

use std::io;

use chrono::{DateTime, Utc};
use domain::account::Account;
use event_log::{Binding, EventLog, VaultError, Whose};
use schemas::account::Tier;
use schemas::{
    AccountId, AggregateType, Event, Log, OrgId, Recorded, SYSTEM_ORG, Sealed, StreamId,
};
use serde::Serialize;
use serde_json::Value;
use service::HttpError;
use sqlx::PgPool;

use super::sheet::Sheet;
use crate::locations::bigint;

/// Positions read at a time, so that no connection waits for the client.
const POSITIONS: i64 = 1_000;
/// Events read at a time.
const EVENTS: usize = 256;

/// A person's data about to be written.
pub(super) struct Gathering {
    log: EventLog,
    models: PgPool,
    account: AccountId,
    own: Own,
}

/// The account itself.
#[derive(Serialize)]
struct Own {
    id: AccountId,
    name: Option<String>,
    email: Option<String>,
    /// The number that they have shown to hold.
    phone: Option<String>,
    /// The number that they gave when they registered.
    named_phone: Option<String>,
    tier: Tier,
    created_at: Option<DateTime<Utc>>,
}

#[derive(Serialize)]
struct Membership {
    id: String,
    name: Option<String>,
    /// Whether they made it.
    own: bool,
    /// The organization that made it, and sees its members.
    organization: Option<String>,
    joined_at: DateTime<Utc>,
    left_at: Option<DateTime<Utc>>,
}

#[derive(Serialize)]
struct Place {
    id: String,
    circle_id: String,
    name: String,
    lat: f64,
    lng: f64,
    radius_m: f64,
    created_at: DateTime<Utc>,
}

#[derive(Serialize)]
struct Pause {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
}

#[derive(Serialize)]
struct Position {
    lat: f64,
    lng: f64,
    accuracy: Option<f64>,
    speed: Option<f64>,
    place_name: Option<String>,
    battery: Option<f64>,
    recorded_at: DateTime<Utc>,
}

/// An event as the feeds tell it.
#[derive(Serialize)]
struct Fact {
    #[serde(rename = "type")]
    event_type: String,
    time: DateTime<Utc>,
    data: Value,
}

impl Gathering {
    /// Reads who it is.
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
            models,
            account,
            own: own.map_err(|error| away(&error))?,
        })
    }

    /// Writes all of it.
    pub(super) async fn write(self, sheet: &mut Sheet, organizations: &[OrgId]) -> io::Result<()> {
        sheet.field("account", &self.own)?;
        sheet.field("organizations", &organizations)?;
        let memberships = self.memberships().await.map_err(io::Error::other)?;
        sheet.field("circles", &memberships)?;
        let places = self.places().await.map_err(io::Error::other)?;
        sheet.field("places", &places)?;
        let pauses = self.pauses().await.map_err(io::Error::other)?;
        sheet.field("pauses", &pauses)?;
        self.facts("sos", AggregateType::Sos, sheet).await?;
        self.facts("visits", AggregateType::Presence, sheet).await?;
        self.positions(sheet).await?;
        sheet.finish().await
    }

    async fn memberships(&self) -> Result<Vec<Membership>, sqlx::Error> {
        sqlx::query_as!(
            Membership,
            r#"SELECT circle.circle_id AS id, circle.name,
                      coalesce(circle.owner_account = $1, false) AS "own!",
                      org.name AS "organization?", mine.joined_at, mine.left_at
               FROM circle_members AS mine
               JOIN circles AS circle USING (circle_id)
               LEFT JOIN organizations AS org ON org.org_id = circle.owner_org
               WHERE mine.account_id = $1
               ORDER BY mine.joined_at, mine.circle_id"#,
            bigint(self.account),
        )
        .fetch_all(&self.models)
        .await
    }

    async fn places(&self) -> Result<Vec<Place>, sqlx::Error> {
        sqlx::query_as!(
            Place,
            "SELECT place_id AS id, circle_id, name, lat, lng, radius_m, created_at
             FROM circle_places WHERE named_by = $1 ORDER BY created_at, circle_id, place_id",
            bigint(self.account),
        )
        .fetch_all(&self.models)
        .await
    }

    async fn pauses(&self) -> Result<Vec<Pause>, sqlx::Error> {
        sqlx::query_as!(
            Pause,
            r#"SELECT from_at AS "from", until_at AS until
               FROM sharing_pauses WHERE account_id = $1 ORDER BY sequence"#,
            bigint(self.account),
        )
        .fetch_all(&self.models)
        .await
    }

    /// Their events of one kind, found among everybody's: those are few beside positions.
    async fn facts(&self, name: &str, kind: AggregateType, sheet: &mut Sheet) -> io::Result<()> {
        sheet.list(name);
        let end = self.log.end(Log::Events).await.map_err(io::Error::other)?;
        let tail = self.log.read_for(Log::Events, Whose::Kind(kind), 0).await;
        let mut tail = tail.map_err(io::Error::other)?;
        while !tail.caught_up() && tail.last_sequence() < end.sequence() {
            let batch = tail.next(EVENTS).await.map_err(io::Error::other)?;
            for recorded in batch.readable("a person's own") {
                if !self.is_own(recorded) {
                    continue;
                }
                let data = self.log.reveal(&recorded.event).await;
                let fact = Fact {
                    event_type: recorded.event.name().to_string(),
                    time: recorded.time,
                    data: data.map_err(io::Error::other)?,
                };
                sheet.item(&fact).await?;
            }
        }
        sheet.end_list();
        Ok(())
    }

    /// Whether an event is about them. A call for help stands in organizations' parts of the log
    /// too; one is enough.
    fn is_own(&self, recorded: &Recorded) -> bool {
        match &recorded.event {
            Event::SosTriggered(call) => {
                call.user_id == self.account && recorded.stream.org.as_str() == SYSTEM_ORG
            }
            Event::SosAcknowledged(call) | Event::SosResolved(call) => {
                call.user_id == self.account && recorded.stream.org.as_str() == SYSTEM_ORG
            }
            Event::PlaceEntered(crossing) | Event::PlaceLeft(crossing) => {
                crossing.user_id == self.account
            }
            _ => false,
        }
    }

    async fn positions(&self, sheet: &mut Sheet) -> io::Result<()> {
        sheet.list("positions");
        let mut before = None;
        loop {
            let some = self.positions_before(before).await;
            let some = some.map_err(io::Error::other)?;
            let Some(last) = some.last() else { break };
            before = Some(last.recorded_at);
            for position in &some {
                sheet.item(position).await?;
            }
        }
        sheet.end_list();
        Ok(())
    }

    /// The newest first.
    async fn positions_before(
        &self,
        before: Option<DateTime<Utc>>,
    ) -> Result<Vec<Position>, sqlx::Error> {
        sqlx::query_as!(
            Position,
            "SELECT lat, lng, accuracy, speed, place_name, battery, recorded_at
             FROM positions
             WHERE account_id = $1 AND recorded_at < coalesce($2::timestamptz, 'infinity')
             ORDER BY recorded_at DESC LIMIT $3",
            bigint(self.account),
            before,
            POSITIONS,
        )
        .fetch_all(&self.models)
        .await
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
