//! The envelope of an event: where it belongs, who caused it, when it was written.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{AccountId, Event, EventId, OrgId};

/// The streams of the log. They differ in volume and retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Log {
    /// Every fact except positions and delivery attempts, in one order, for ever.
    Events,
    /// Persons' positions, for 90 days by default.
    Locations,
    /// Attempts to deliver webhooks, for 30 days by default.
    Deliveries,
}

macro_rules! aggregate_types {
    ($($(#[$doc:meta])* $name:ident = $token:literal in $log:ident),+ $(,)?) => {
        /// The kinds of aggregate; each event belongs to one aggregate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum AggregateType { $($(#[$doc])* $name),+ }

        impl AggregateType {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The kind as written in a subject.
            pub const fn token(self) -> &'static str {
                match self { $(Self::$name => $token),+ }
            }

            /// The stream that keeps this kind.
            pub const fn log(self) -> Log {
                match self { $(Self::$name => Log::$log),+ }
            }
        }
    };
}

aggregate_types! {
    /// An organization and its members.
    Organization = "org" in Events,
    /// A person's account.
    Account = "account" in Events,
    /// A value that only one holder may have, such as an e-mail address.
    Claim = "claim" in Events,
    /// An API key.
    Key = "key" in Events,
    /// A named secret of an organization.
    Secret = "secret" in Events,
    /// A workflow's definition.
    Workflow = "workflow" in Events,
    /// A run, from its trigger to its end.
    Run = "run" in Events,
    /// A webhook endpoint.
    Webhook = "webhook" in Events,
    /// A company record.
    Company = "company" in Events,
    /// A deal record.
    Deal = "deal" in Events,
    /// A contact record.
    Contact = "contact" in Events,
    /// An order record.
    Order = "order" in Events,
    /// A lead record.
    Lead = "lead" in Events,
    /// A client record.
    Client = "client" in Events,
    /// A circle, its invites, members and places.
    Circle = "circle" in Events,
    /// One person at one place of one circle.
    Presence = "presence" in Events,
    /// A call for help; one that an organization may see is in its part of the log as well.
    Sos = "sos" in Events,
    /// A person's positions.
    Track = "track" in Locations,
    /// What one event or run from outside was no longer allowed to cause.
    Cause = "cause" in Events,
    /// One event on its way to one webhook endpoint.
    Delivery = "delivery" in Deliveries,
}

/// The organization of aggregates that belong to none, such as accounts and claims.
pub const SYSTEM_ORG: &str = "_";

/// An aggregate's own stream of events: the unit of consistency.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// The organization it belongs to.
    pub org: OrgId,
    /// Its kind.
    pub aggregate: AggregateType,
    /// Its id, as given (it may contain any characters).
    pub id: String,
}

impl StreamId {
    /// Identifies an aggregate.
    pub fn new(org: &OrgId, aggregate: AggregateType, id: impl Into<String>) -> Self {
        Self {
            org: org.clone(),
            aggregate,
            id: id.into(),
        }
    }

    /// A person's account.
    pub fn of_account(id: AccountId) -> Self {
        Self::new(
            &OrgId::from(SYSTEM_ORG),
            AggregateType::Account,
            id.to_string(),
        )
    }

    /// A person's positions.
    pub fn of_track(id: AccountId) -> Self {
        Self::new(
            &OrgId::from(SYSTEM_ORG),
            AggregateType::Track,
            id.to_string(),
        )
    }
}

impl fmt::Display for StreamId {
    /// `contact/abc`: the form used in `ce-subject` and in the public feed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.aggregate.token(), self.id)
    }
}

/// A W3C trace context header (`traceparent`), kept from the request to the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traceparent(String);

impl Traceparent {
    /// Parses a header value of the form `00-<32 hex>-<16 hex>-<2 hex>` that names a trace.
    pub fn parse(value: &str) -> Option<Self> {
        let mut parts = value.split('-');
        let hex = |part: Option<&str>, len: usize| {
            part.is_some_and(|p| {
                p.len() == len && p.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            })
        };
        let named = value.len() == 55
            && hex(parts.next(), 2)
            && hex(parts.next(), 32)
            && hex(parts.next(), 16)
            && hex(parts.next(), 2)
            && !value.starts_with("ff")
            && value[3..35].bytes().any(|b| b != b'0')
            && value[36..52].bytes().any(|b| b != b'0');
        named.then(|| Self(value.to_owned()))
    }

    /// A new trace from random bits: `trace` names it, `span` its first span.
    pub fn from_parts(trace: u128, span: u64) -> Self {
        Self::new(trace, span, true)
    }

    /// A span of a trace, and whether it is recorded.
    pub fn new(trace: u128, span: u64, is_sampled: bool) -> Self {
        let (trace, span, flags) = (trace.max(1), span.max(1), u8::from(is_sampled));
        Self(format!("00-{trace:032x}-{span:016x}-{flags:02x}"))
    }

    /// The header's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 32 hexadecimal digits that name the trace.
    pub fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    /// The 16 hexadecimal digits that name the span.
    pub fn span_id(&self) -> &str {
        &self.0[36..52]
    }

    /// Whether the party that started the trace records it.
    pub fn is_sampled(&self) -> bool {
        u8::from_str_radix(&self.0[53..], 16).is_ok_and(|flags| flags & 1 == 1)
    }

    /// The same trace under another span, to pass on.
    #[must_use]
    pub fn with_span(&self, span: u64) -> Self {
        Self(format!(
            "{}-{:016x}-{}",
            &self.0[..35],
            span.max(1),
            &self.0[53..]
        ))
    }
}

/// Why an event was written: the request or event that led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Shared by everything that follows from one request.
    pub correlation_id: Option<String>,
    /// The event or request that directly led to this event.
    pub causation_id: Option<String>,
    /// The trace this event belongs to.
    pub traceparent: Option<Traceparent>,
    /// The number of event-triggered runs between this event and the request from outside.
    pub hops: u8,
    /// The origin of runs that trigger each other; `None` where no run precedes this event except
    /// the one whose stream it is in.
    pub cause: Option<Cause>,
    /// Who or what wrote it (see [`Actor`]); `None` where that is nobody outside.
    pub actor: Option<Actor>,
}

/// Who or what wrote an event. Always an id, never a name: names change, and persons are forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A request with this API key.
    Key(String),
    /// A person of the organization's staff, on its pages.
    Person(AccountId),
    /// A step of this run.
    Run(String),
    /// The operator's command line.
    Operator,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(f, "key:{id}"),
            Self::Person(id) => write!(f, "person:{id}"),
            Self::Run(id) => write!(f, "run:{id}"),
            Self::Operator => f.write_str("operator"),
        }
    }
}

impl Actor {
    /// Parses only what [`Self`] displays.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None if text == "operator" => Some(Self::Operator),
            Some(("key", id)) => Some(Self::Key(id.to_owned())),
            Some(("person", id)) => id.parse().ok().map(|id| Self::Person(AccountId(id))),
            Some(("run", id)) => Some(Self::Run(id.to_owned())),
            _ => None,
        }
    }
}

/// The event or run from outside from which a chain of runs originates. The runs that it may
/// cause are bounded, so they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The event that came from outside, or the run that was started from there.
    pub id: Uuid,
    /// How many runs it had caused when this one was triggered.
    pub runs: u32,
}

impl Cause {
    /// A cause that has not led to any run yet.
    pub const fn new(id: Uuid) -> Self {
        Self { id, runs: 0 }
    }

    /// The cause of an event that is part of a run or follows from one.
    pub fn of(recorded: &Recorded) -> Option<Self> {
        recorded.context.cause.or_else(|| {
            let of_run = recorded.stream.aggregate == AggregateType::Run;
            of_run.then(|| Self::of_run(&recorded.stream.id))
        })
    }

    /// A run that was started from outside.
    pub fn of_run(id: &str) -> Self {
        // Every id that Waypost assigns is a UUID.
        Self::new(Uuid::try_parse(id).unwrap_or_default())
    }
}

impl Context {
    /// The context of an event that follows from `cause`.
    pub fn caused_by(cause: &Recorded) -> Self {
        Self {
            correlation_id: cause
                .context
                .correlation_id
                .clone()
                .or_else(|| Some(cause.id.to_string())),
            causation_id: Some(cause.id.to_string()),
            traceparent: cause.context.traceparent.clone(),
            hops: cause.context.hops,
            cause: cause.context.cause,
            actor: None,
        }
    }
}

/// A command's `Idempotency-Key`, as recorded on the events it led to. Both fields are keyed
/// hashes, so the key and the body cannot be read from the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Identifies the caller's key.
    pub key: String,
    /// Identifies the request's path and body.
    pub fingerprint: String,
}

/// An event that has been decided but not yet appended.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its id, chosen before the first attempt to append it.
    pub id: EventId,
    /// When it was decided.
    pub time: DateTime<Utc>,
    /// What happened.
    pub event: Event,
    /// What led to it.
    pub context: Context,
    /// The receipt of the command, if it came with an `Idempotency-Key`.
    pub receipt: Option<Receipt>,
}

/// An event as stored in the log.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its sequence in its stream of the log.
    pub sequence: u64,
    /// The aggregate it belongs to.
    pub stream: StreamId,
    /// Its id.
    pub id: EventId,
    /// When it was decided.
    pub time: DateTime<Utc>,
    /// What happened, in the newest version.
    pub event: Event,
    /// What led to it.
    pub context: Context,
    /// The receipt of the command that it came from.
    pub receipt: Option<Receipt>,
}
