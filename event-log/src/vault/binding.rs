//! What a sealed value is bound to: its owner, its field, and what has that field. It opens nowhere
//! else.

use chrono::{DateTime, Utc};
use schemas::circle::CircleOwner;
use schemas::{AccountId, CircleId, Event, OrgId, PlaceId, Sealed, SosId, WebhookId};

use super::Owner;

/// A field that holds a sealed value, and what it belongs to. Events that repeat a value of one
/// thing, such as those of one call for help, share a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// A person's name.
    Name(AccountId),
    /// A person's e-mail address.
    Email(AccountId),
    /// The hash of a person's password.
    Password(AccountId),
    /// The address that the invite with this id went to, under the account that it would open.
    Invited(AccountId, String),
    /// A number that a person has named.
    NamedPhone(AccountId),
    /// A number that a person has shown to be theirs.
    VerifiedPhone(AccountId),
    /// A person's position at a time.
    Position(AccountId, DateTime<Utc>),
    /// The name of the place that a person came to or left.
    Crossing {
        /// The person.
        account: AccountId,
        /// The circle that watches the place.
        circle: CircleId,
        /// The place.
        place: PlaceId,
        /// When it was.
        at: DateTime<Utc>,
    },
    /// Place and reason of a person's call for help.
    CallForHelp(AccountId, SosId),
    /// The name of somebody's circle.
    CircleName(CircleOwner, CircleId),
    /// What a circle watches, under the account that named it.
    WatchedPlace(AccountId, PlaceId),
    /// The secret that signs an endpoint's deliveries.
    WebhookSecret(OrgId, WebhookId),
    /// An organization's secret with this name.
    Secret(OrgId, String),
}

impl Binding {
    /// The personal part of a public event, and its binding; see [`Event::personal`].
    pub fn of_personal(event: &Event) -> Option<(Self, &Sealed)> {
        let binding = match event {
            Event::LocationUpdated(data) => Self::Position(data.user_id, data.recorded_at),
            Event::PlaceEntered(data) | Event::PlaceLeft(data) => Self::Crossing {
                account: data.user_id,
                circle: data.circle_id.clone(),
                place: data.place_id.clone(),
                at: data.recorded_at,
            },
            Event::SosTriggered(data) => Self::CallForHelp(data.user_id, data.sos_id.clone()),
            Event::SosAcknowledged(data) | Event::SosResolved(data) => {
                Self::CallForHelp(data.user_id, data.sos_id.clone())
            }
            _ => return None,
        };
        event.personal().map(|(_, sealed)| (binding, sealed))
    }

    /// The owner whose key it is sealed under.
    pub fn owner(&self) -> Owner {
        match self {
            Self::Name(account)
            | Self::Email(account)
            | Self::Password(account)
            | Self::Invited(account, _)
            | Self::NamedPhone(account)
            | Self::VerifiedPhone(account)
            | Self::Position(account, _)
            | Self::Crossing { account, .. }
            | Self::CallForHelp(account, _)
            | Self::CircleName(CircleOwner::Account(account), _)
            | Self::WatchedPlace(account, _) => Owner::Account(*account),
            Self::CircleName(CircleOwner::Organization(org), _)
            | Self::WebhookSecret(org, _)
            | Self::Secret(org, _) => Owner::Organization(org.clone()),
        }
    }

    /// What a text is bound to under the key of the owner with this `name`: it differs between any
    /// two bindings. Texts in the log were bound to it, so it never changes.
    pub(super) fn bound_to(&self, name: &str) -> String {
        let time = |at: &DateTime<Utc>| at.timestamp_micros().to_string();
        let (field, of) = match self {
            Self::Name(_) => ("account.name", vec![]),
            Self::Email(_) => ("account.email", vec![]),
            Self::Password(_) => ("account.password", vec![]),
            Self::Invited(_, invite) => ("invite.email", vec![invite.clone()]),
            Self::NamedPhone(_) => ("account.phone_named", vec![]),
            Self::VerifiedPhone(_) => ("account.phone_verified", vec![]),
            Self::Position(_, at) => ("location", vec![time(at)]),
            Self::Crossing {
                circle, place, at, ..
            } => (
                "crossing",
                vec![circle.to_string(), place.to_string(), time(at)],
            ),
            Self::CallForHelp(_, sos) => ("sos", vec![sos.to_string()]),
            Self::CircleName(_, circle) => ("circle.name", vec![circle.to_string()]),
            Self::WatchedPlace(_, place) => ("circle.place", vec![place.to_string()]),
            Self::WebhookSecret(_, webhook) => ("webhook.secret", vec![webhook.to_string()]),
            Self::Secret(_, named) => ("secret", vec![named.clone()]),
        };
        serde_json::json!([name, field, of]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_are_bound_to_the_same() {
        let (ada, at) = (AccountId(1), DateTime::UNIX_EPOCH);
        let crossing = |circle: &str, place: &str| Binding::Crossing {
            account: ada,
            circle: circle.into(),
            place: place.into(),
            at,
        };
        let org = || OrgId::from("o");
        let owner = || CircleOwner::Account(ada);
        let bindings = [
            Binding::Name(ada),
            Binding::Email(ada),
            Binding::Password(ada),
            Binding::Invited(ada, "1".to_owned()),
            Binding::NamedPhone(ada),
            Binding::VerifiedPhone(ada),
            Binding::Position(ada, at),
            Binding::Position(ada, DateTime::from_timestamp_micros(1).unwrap()),
            crossing("a", "bc"),
            crossing("ab", "c"),
            crossing("a\",\"b", "c"),
            Binding::CallForHelp(ada, "1".into()),
            Binding::CallForHelp(ada, "2".into()),
            Binding::CircleName(owner(), "1".into()),
            Binding::WatchedPlace(ada, "1".into()),
            Binding::WebhookSecret(org(), "1".into()),
            Binding::Secret(org(), "1".to_owned()),
            Binding::Secret(org(), "2".to_owned()),
        ];
        let mut bound: HashSet<String> = bindings.iter().map(|one| one.bound_to("n")).collect();
        assert_eq!(bound.len(), bindings.len());
        assert!(bound.insert(Binding::Name(ada).bound_to("another")));
    }

    #[test]
    fn what_texts_in_the_log_were_bound_to_stays() {
        let binding = Binding::Position(AccountId(1), DateTime::UNIX_EPOCH);
        let bound = binding.bound_to("account.1");
        assert_eq!(bound, r#"["account.1","location",["0"]]"#);
        let binding = Binding::Secret(OrgId::from("o"), "CRM_TOKEN".to_owned());
        let bound = binding.bound_to("org.o");
        assert_eq!(bound, r#"["org.o","secret",["CRM_TOKEN"]]"#);
    }
}
