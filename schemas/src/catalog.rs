//! The catalogue: every event type with its name, version and visibility.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AccountId, Sealed, account, circle, claim, delivery, key, location, nesting, organization,
    presence, record, run, secret, sos, upcast, webhook, workflow,
};

/// Who may see an event from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Part of the organization's public feed.
    Public,
    /// An internal fact of Waypost that no feed shows.
    Internal,
}

/// One published event type.
#[derive(Debug)]
pub struct CatalogEntry {
    /// Its name, such as `run.started`.
    pub name: &'static str,
    /// Its newest version, from 1.
    pub version: u16,
    /// Who may see it.
    pub visibility: Visibility,
    /// Generates the JSON Schema of its data.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl CatalogEntry {
    /// The type with its version as stored in the log, such as `run.started.v1`.
    pub fn recorded_type(&self) -> String {
        recorded_type(self.name, self.version)
    }

    /// The complete JSON Schema of the type's data, as stored in `json/`: it describes what is
    /// written, field for field.
    pub fn json_schema(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let meta_schema = settings.meta_schema.clone();
        let mut generator = settings.into_generator();
        let mut schema = (self.schema)(&mut generator);
        let definitions = generator.take_definitions(true);
        let mut document = Map::new();
        if let Some(meta_schema) = meta_schema {
            document.insert("$schema".to_owned(), meta_schema.into_owned().into());
        }
        document.insert("title".to_owned(), self.recorded_type().into());
        document.append(schema.ensure_object());
        if !definitions.is_empty() {
            document.insert("$defs".to_owned(), definitions.into());
        }
        Value::Object(document)
    }
}

fn recorded_type(name: &str, version: u16) -> String {
    format!("{name}.v{version}")
}

/// Why recorded bytes cannot be decoded as an event.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// No such type, or a version that is newer than this program.
    #[error("unknown event type {0}")]
    UnknownType(String),
    /// The data does not fit the type.
    #[error("{name}: {source}")]
    Data {
        /// The event's recorded type.
        name: String,
        /// What does not fit.
        source: serde_json::Error,
    },
}

/// A business event that the user defines, written by a NOTIFY step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Custom {
    /// The name that follows `custom.`.
    pub name: String,
    /// The data as given.
    pub data: Map<String, Value>,
}

const CUSTOM: &str = "custom.";

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident($data:ty) = $name:literal v $version:literal $visibility:ident),+ $(,)?) => {
        /// Every event, in the newest version of its type.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($(#[$doc])* $variant($data),)+
            /// A business event that the user defines.
            Custom(Custom),
        }

        /// Every published type except `custom.<name>`, whose data the user defines.
        pub const CATALOG: &[CatalogEntry] = &[$(CatalogEntry {
            name: $name,
            version: $version,
            visibility: Visibility::$visibility,
            schema: <$data as JsonSchema>::json_schema,
        }),+];

        impl Event {
            /// The type's name, such as `run.started`.
            pub fn name(&self) -> Cow<'static, str> {
                match self {
                    $(Self::$variant(_) => Cow::Borrowed($name),)+
                    Self::Custom(custom) => Cow::Owned(format!("{CUSTOM}{}", custom.name)),
                }
            }

            /// The version that is written.
            pub fn version(&self) -> u16 {
                match self {
                    $(Self::$variant(_) => $version,)+
                    Self::Custom(_) => 1,
                }
            }

            /// Who may see it.
            pub fn visibility(&self) -> Visibility {
                match self {
                    $(Self::$variant(_) => Visibility::$visibility,)+
                    Self::Custom(_) => Visibility::Public,
                }
            }

            /// The event's data as JSON, as stored in the log.
            pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
                match self {
                    $(Self::$variant(data) => serde_json::to_vec(data),)+
                    Self::Custom(custom) => serde_json::to_vec(&custom.data),
                }
            }

            /// Decodes recorded data, lifting older versions to the newest.
            pub fn decode(recorded_type: &str, data: &[u8]) -> Result<Self, DecodeError> {
                let wrong = |source| DecodeError::Data { name: recorded_type.to_owned(), source };
                match recorded_type {
                    $(concat!($name, ".v", $version) => {
                        nesting::read(data).map(Self::$variant).map_err(wrong)
                    })+
                    other => match custom_name(other) {
                        Some(name) => Ok(Self::Custom(Custom {
                            name: name.to_owned(),
                            data: nesting::read(data).map_err(wrong)?,
                        })),
                        None => {
                            let lifted = upcast::lift(upcast::UPCASTERS, other, data);
                            let (newer, data) = lifted.map_err(wrong)?
                                .ok_or_else(|| DecodeError::UnknownType(other.to_owned()))?;
                            Self::decode(&newer, &data)
                        }
                    },
                }
            }

            fn data(&self) -> Result<Value, serde_json::Error> {
                match self {
                    $(Self::$variant(data) => serde_json::to_value(data),)+
                    Self::Custom(custom) => Ok(Value::Object(custom.data.clone())),
                }
            }
        }
    };
}

fn custom_name(recorded_type: &str) -> Option<&str> {
    recorded_type.strip_prefix(CUSTOM)?.strip_suffix(".v1")
}

events! {
    /// An organization was created.
    OrganizationCreated(organization::Created) = "organization.created" v 1 Internal,
    /// A person joined an organization's staff.
    OrganizationMemberAdded(organization::MemberAdded) = "organization.member_added" v 1 Internal,
    /// A person no longer belongs to an organization's staff.
    OrganizationMemberRemoved(organization::MemberRemoved) = "organization.member_removed" v 1 Internal,
    /// Somebody was invited to an organization's staff.
    OrganizationMemberInvited(organization::MemberInvited) = "organization.member_invited" v 1 Internal,
    /// An invite to an organization's staff was accepted.
    OrganizationInviteAccepted(organization::InviteAccepted) = "organization.invite_accepted" v 1 Internal,
    /// An invite to an organization's staff was taken back.
    OrganizationInviteWithdrawn(organization::InviteWithdrawn) = "organization.invite_withdrawn" v 1 Internal,
    /// A person opened an account.
    AccountRegistered(account::Registered) = "account.registered" v 1 Internal,
    /// A person named a phone number.
    AccountPhoneNamed(account::PhoneNamed) = "account.phone_named" v 1 Internal,
    /// A person proved that they hold a phone number.
    AccountPhoneVerified(account::PhoneVerified) = "account.phone_verified" v 1 Internal,
    /// A person set another password.
    AccountPasswordChanged(account::PasswordChanged) = "account.password_changed" v 1 Internal,
    /// A person ended an access token.
    AccountSignedOut(account::SignedOut) = "account.signed_out" v 1 Internal,
    /// The operator moved an account to a tier.
    AccountTierSet(account::TierSet) = "account.tier_set" v 1 Internal,
    /// A person hides where they are.
    AccountSharingPaused(account::SharingPaused) = "account.sharing_paused" v 1 Internal,
    /// A person shows again where they are.
    AccountSharingResumed(account::SharingResumed) = "account.sharing_resumed" v 1 Internal,
    /// A person was forgotten.
    AccountForgotten(account::Forgotten) = "account.forgotten" v 1 Internal,
    /// A value was taken by its only holder.
    ClaimClaimed(claim::Claimed) = "claim.claimed" v 1 Internal,
    /// A value was given back.
    ClaimReleased(claim::Released) = "claim.released" v 1 Internal,
    /// An API key was made.
    KeyCreated(key::Created) = "key.created" v 2 Public,
    /// An API key was revoked.
    KeyRevoked(key::Revoked) = "key.revoked" v 1 Public,
    /// A named secret was given a value.
    SecretSet(secret::Set) = "secret.set" v 2 Internal,
    /// A workflow's definition was saved.
    WorkflowSaved(workflow::Saved) = "workflow.saved" v 2 Public,
    /// A run of a workflow was requested.
    WorkflowTriggered(workflow::Triggered) = "workflow.triggered" v 1 Public,
    /// An event did not trigger a workflow, because of a bound or because its filter failed.
    WorkflowNotTriggered(workflow::NotTriggered) = "workflow.not_triggered" v 3 Public,
    /// A runner started the run.
    RunStarted(run::Started) = "run.started" v 1 Public,
    /// An attempt at a step began.
    RunStepStarted(run::StepStarted) = "run.step_started" v 1 Public,
    /// A step waits for an event.
    RunEventAwaited(run::EventAwaited) = "run.event_awaited" v 1 Internal,
    /// A step succeeded.
    RunStepSucceeded(run::StepSucceeded) = "run.step_succeeded" v 2 Public,
    /// An attempt at a step failed.
    RunStepFailed(run::StepFailed) = "run.step_failed" v 1 Public,
    /// The run continues only after a time.
    RunWaiting(run::Waiting) = "run.waiting" v 1 Public,
    /// The run succeeded.
    RunSucceeded(run::Succeeded) = "run.succeeded" v 1 Public,
    /// The run failed.
    RunFailed(run::Failed) = "run.failed" v 1 Public,
    /// A run that had ended continues from the steps that failed.
    RunRetried(run::Retried) = "run.retried" v 1 Public,
    /// The run was cancelled.
    RunCancelled(run::Cancelled) = "run.cancelled" v 1 Public,
    /// The run was forgotten with a person whose data it held.
    RunForgotten(run::Forgotten) = "run.forgotten" v 1 Internal,
    /// A company was written for the first time.
    CompanyCreated(record::Company) = "company.created" v 1 Public,
    /// A company was replaced.
    CompanyUpdated(record::Company) = "company.updated" v 1 Public,
    /// A company was deleted.
    CompanyDeleted(record::Deleted) = "company.deleted" v 1 Public,
    /// A deal was written for the first time.
    DealCreated(record::Deal) = "deal.created" v 1 Public,
    /// A deal was replaced.
    DealUpdated(record::Deal) = "deal.updated" v 1 Public,
    /// A deal was deleted.
    DealDeleted(record::Deleted) = "deal.deleted" v 1 Public,
    /// A contact was written for the first time.
    ContactCreated(record::Contact) = "contact.created" v 1 Public,
    /// A contact was replaced.
    ContactUpdated(record::Contact) = "contact.updated" v 1 Public,
    /// A contact was deleted.
    ContactDeleted(record::Deleted) = "contact.deleted" v 1 Public,
    /// An order was written for the first time.
    OrderCreated(record::Order) = "order.created" v 1 Public,
    /// An order was replaced.
    OrderUpdated(record::Order) = "order.updated" v 1 Public,
    /// An order was deleted.
    OrderDeleted(record::Deleted) = "order.deleted" v 1 Public,
    /// A lead was written for the first time.
    LeadCreated(record::Lead) = "lead.created" v 1 Public,
    /// A lead was replaced.
    LeadUpdated(record::Lead) = "lead.updated" v 1 Public,
    /// A lead was deleted.
    LeadDeleted(record::Deleted) = "lead.deleted" v 1 Public,
    /// A client was written for the first time.
    ClientCreated(record::Client) = "client.created" v 1 Public,
    /// A client was replaced.
    ClientUpdated(record::Client) = "client.updated" v 1 Public,
    /// A client was deleted.
    ClientDeleted(record::Deleted) = "client.deleted" v 1 Public,
    /// A circle was created.
    CircleCreated(circle::Created) = "circle.created" v 1 Internal,
    /// Somebody can join a circle.
    CircleInviteMade(circle::InviteMade) = "circle.invite_made" v 1 Internal,
    /// A person joined a circle.
    CircleMemberJoined(circle::MemberJoined) = "circle.member_joined" v 1 Public,
    /// A person left a circle.
    CircleMemberLeft(circle::MemberLeft) = "circle.member_left" v 1 Public,
    /// A circle watches a place.
    CirclePlaceAdded(circle::PlaceAdded) = "circle.place_added" v 1 Internal,
    /// A circle no longer watches a place.
    CirclePlaceRemoved(circle::PlaceRemoved) = "circle.place_removed" v 1 Internal,
    /// A person entered a place.
    PlaceEntered(presence::Crossing) = "place.entered" v 1 Public,
    /// A person left a place.
    PlaceLeft(presence::Crossing) = "place.left" v 1 Public,
    /// A person called for help.
    SosTriggered(sos::Triggered) = "sos.triggered" v 1 Public,
    /// A call for help was seen.
    SosAcknowledged(sos::Answered) = "sos.acknowledged" v 1 Public,
    /// A call for help has ended.
    SosResolved(sos::Answered) = "sos.resolved" v 1 Public,
    /// A person was somewhere.
    LocationUpdated(location::Updated) = "location.updated" v 1 Public,
    /// A webhook endpoint was made.
    WebhookCreated(webhook::Created) = "webhook.created" v 1 Public,
    /// A webhook endpoint was changed.
    WebhookUpdated(webhook::Updated) = "webhook.updated" v 1 Public,
    /// A webhook endpoint was switched off for failing.
    WebhookDisabled(webhook::Disabled) = "webhook.disabled" v 1 Public,
    /// A webhook endpoint was deleted.
    WebhookDeleted(webhook::Deleted) = "webhook.deleted" v 1 Public,
    /// A webhook endpoint was given a new secret.
    WebhookSecretRotated(webhook::SecretRotated) = "webhook.secret_rotated" v 1 Public,
    /// A replay of deliveries was requested.
    WebhookReplayRequested(webhook::ReplayRequested) = "webhook.replay_requested" v 1 Internal,
    /// A test of a webhook endpoint was requested.
    WebhookTestRequested(webhook::TestRequested) = "webhook.test_requested" v 1 Internal,
    /// A delivery that was requested waits.
    DeliveryQueued(delivery::Queued) = "delivery.queued" v 1 Internal,
    /// An attempt to deliver ended.
    DeliveryAttempted(delivery::Attempted) = "delivery.attempted" v 1 Internal,
}

/// Fields that are in the log but must not be shown outside.
const HIDDEN_FIELDS: &[&str] = &["keySha256", "secret", "sealed", "audience"];

impl Event {
    /// The type with its version as stored in the log, such as `run.started.v1`.
    pub fn recorded_type(&self) -> String {
        recorded_type(&self.name(), self.version())
    }

    /// The personal part of a public event: a JSON object, sealed under the account, whose fields
    /// are shown beside the others outside ([`Self::public_data`] leaves them out).
    pub fn personal(&self) -> Option<(AccountId, &Sealed)> {
        match self {
            Self::LocationUpdated(data) => Some((data.user_id, &data.sealed)),
            Self::PlaceEntered(data) | Self::PlaceLeft(data) => Some((data.user_id, &data.sealed)),
            Self::SosTriggered(data) => Some((data.user_id, &data.sealed)),
            Self::SosAcknowledged(data) | Self::SosResolved(data) => {
                Some((data.user_id, &data.sealed))
            }
            _ => None,
        }
    }

    /// The data as the public feed, webhooks and sockets show it: without hashes and secrets.
    pub fn public_data(&self) -> Result<Value, serde_json::Error> {
        let mut data = self.data()?;
        let own = !matches!(self, Self::Custom(_));
        if let (true, Value::Object(fields)) = (own, &mut data) {
            fields.retain(|name, _| !HIDDEN_FIELDS.contains(&name.as_str()));
        }
        Ok(data)
    }
}
