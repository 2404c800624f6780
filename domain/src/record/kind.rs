//! The kinds of record and the fields of each.

use chrono::{DateTime, Utc};
use schemas::record::Deleted;
use schemas::{AggregateType, Event, RecordId};

use super::decide::Change;
use super::fields::{
    ClientFields, CompanyFields, ContactFields, DealFields, LeadFields, OrderFields,
};
use super::values::Values;
use crate::FieldError;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $token:literal {
        fields: $fields:ident, aggregate: $aggregate:ident,
        created: $created:ident, updated: $updated:ident, deleted: $deleted:ident $(,)?
    }),+ $(,)?) => {
        /// A kind of record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[$doc])* $kind),+ }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// Parses a kind's name in URLs and commands, such as `contacts`.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
            }

            /// Its name in URLs and commands.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $token),+ }
            }

            /// Its aggregate type in the log.
            pub const fn aggregate(self) -> AggregateType {
                match self { $(Self::$kind => AggregateType::$aggregate),+ }
            }

            /// The names of its own fields, dotted for nested objects; `id`, `createdAt` and
            /// `updatedAt` are common to all.
            pub const fn field_names(self) -> &'static [&'static str] {
                match self { $(Self::$kind => $fields::NAMES),+ }
            }

            /// The names of the nested objects.
            pub(super) const fn groups(self) -> &'static [&'static str] {
                match self { $(Self::$kind => $fields::GROUPS),+ }
            }

            /// Whether the record exists after its last event.
            pub fn exists(self, last: Option<&Event>) -> bool {
                match self {
                    $(Self::$kind => {
                        matches!(last, Some(Event::$created(_) | Event::$updated(_)))
                    })+
                }
            }

            /// The event that deletes the record.
            pub(super) fn deleted(self, id: RecordId) -> Event {
                match self { $(Self::$kind => Event::$deleted(Deleted { id })),+ }
            }
        }

        /// What an event did to a record; `None` if it deleted it or is not a record's event.
        pub fn change_of(event: &Event) -> Option<Change> {
            match event {
                $(Event::$created(_) => Some(Change::Created),
                Event::$updated(_) => Some(Change::Updated),)+
                _ => None,
            }
        }

        /// Whether an event deleted a record.
        pub fn is_deletion(event: &Event) -> bool {
            matches!(event, $(Event::$deleted(_))|+)
        }

        /// The own fields of a record of some kind.
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum Fields { $($kind($fields)),+ }

        impl Fields {
            pub(super) fn read(kind: Kind, values: &mut Values<'_>) -> Result<Self, FieldError> {
                match kind { $(Kind::$kind => $fields::read(values).map(Self::$kind)),+ }
            }

            pub(super) fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind),+ }
            }

            /// The event that gives the record these fields; `None` if it already has them.
            pub(super) fn write(
                self,
                id: RecordId,
                created_at: Option<DateTime<Utc>>,
                last: Option<&Event>,
                now: DateTime<Utc>,
            ) -> Option<(Change, Event)> {
                match self {
                    $(Self::$kind(fields) => match last {
                        Some(Event::$created(old) | Event::$updated(old)) => {
                            let new = fields.complete(id, created_at.unwrap_or(old.created_at));
                            (*old != new).then(|| (Change::Updated, Event::$updated(new)))
                        }
                        _ => {
                            let new = fields.complete(id, created_at.unwrap_or(now));
                            Some((Change::Created, Event::$created(new)))
                        }
                    }),+
                }
            }
        }
    };
}

kinds! {
    /// Organizations that one does business with.
    Companies = "companies" {
        fields: CompanyFields, aggregate: Company,
        created: CompanyCreated, updated: CompanyUpdated, deleted: CompanyDeleted,
    },
    /// Business that may come about.
    Deals = "deals" {
        fields: DealFields, aggregate: Deal,
        created: DealCreated, updated: DealUpdated, deleted: DealDeleted,
    },
    /// People at companies.
    Contacts = "contacts" {
        fields: ContactFields, aggregate: Contact,
        created: ContactCreated, updated: ContactUpdated, deleted: ContactDeleted,
    },
    /// What was sold.
    Orders = "orders" {
        fields: OrderFields, aggregate: Order,
        created: OrderCreated, updated: OrderUpdated, deleted: OrderDeleted,
    },
    /// People who asked for something.
    Leads = "leads" {
        fields: LeadFields, aggregate: Lead,
        created: LeadCreated, updated: LeadUpdated, deleted: LeadDeleted,
    },
    /// People who buy.
    Clients = "clients" {
        fields: ClientFields, aggregate: Client,
        created: ClientCreated, updated: ClientUpdated, deleted: ClientDeleted,
    },
}
