//! The events of Waypost: what may be written to the log, in which shape, for ever.
//!
//! A published type never changes. A new shape is a new version with an upcaster from the one
//! before ([`upcast`]); recorded samples of every version under `samples/` must decode for ever,
//! and the JSON Schemas under `json/` are generated from the types here.

mod catalog;
mod envelope;
mod ids;
mod sealed;
pub mod upcast;

pub mod account;
pub mod circle;
pub mod claim;
pub mod delivery;
pub mod key;
pub mod location;
pub mod nesting;
pub mod organization;
pub mod presence;
pub mod record;
pub mod run;
pub mod secret;
pub mod sos;
pub mod webhook;
pub mod workflow;

pub use catalog::{CATALOG, CatalogEntry, Custom, DecodeError, Event, Visibility};
pub use envelope::{
    Actor, AggregateType, Cause, Context, Log, NewEvent, Receipt, Recorded, SYSTEM_ORG, StreamId,
    Traceparent,
};
pub use ids::{
    AccountId, CircleId, DeliveryId, EventId, InviteId, KeyId, OrgId, PlaceId, RecordId, RunId,
    SosId, StepId, TokenId, WebhookId, WorkflowId,
};
pub use sealed::Sealed;
