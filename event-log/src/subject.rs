//! Subjects: the only place where they are built and parsed.

use async_nats::Subject;
use schemas::{AggregateType, Log, OrgId, StreamId};

use crate::Keyring;

/// Marks a token that is a keyed hash.
const HASHED: &str = "~";

/// Builds subjects of the form `evt.<org>.<aggregate>.<id>`.
#[derive(Clone)]
pub(crate) struct Subjects {
    prefix: String,
    keyring: Keyring,
}

impl Subjects {
    pub(crate) fn new(prefix: &str, keyring: Keyring) -> Self {
        Self {
            prefix: prefix.to_owned(),
            keyring,
        }
    }

    /// A name of the master key that reveals nothing else about it.
    pub(crate) fn master_key_mark(&self) -> String {
        self.keyring.keyed_hash("master key", &[])
    }

    fn root(&self, log: Log) -> String {
        let root = match log {
            Log::Events => "evt",
            Log::Locations => "loc",
            Log::Deliveries => "dlv",
        };
        format!("{}{root}", self.prefix)
    }

    /// All subjects of the stream of `log`.
    pub(crate) fn all(&self, log: Log) -> String {
        format!("{}.>", self.root(log))
    }

    /// Every subject of one kind of aggregate.
    pub(crate) fn of_kind(&self, kind: AggregateType) -> String {
        format!("{}.*.{}.*", self.root(kind.log()), kind.token())
    }

    /// Every subject of one organization, or those of one kind of its aggregates.
    pub(crate) fn of_organization(
        &self,
        log: Log,
        org: &OrgId,
        only: Option<AggregateType>,
    ) -> String {
        let (root, org) = (self.root(log), self.token(org.as_str()));
        match only {
            Some(kind) => format!("{root}.{org}.{}.*", kind.token()),
            None => format!("{root}.{org}.>"),
        }
    }

    /// The subject of one aggregate's stream.
    pub(crate) fn of(&self, stream: &StreamId) -> Subject {
        let root = self.root(stream.aggregate.log());
        let (org, id) = (self.token(stream.org.as_str()), self.token(&stream.id));
        Subject::from(format!("{root}.{org}.{}.{id}", stream.aggregate.token()))
    }

    fn token(&self, id: &str) -> String {
        token(&self.keyring, HASHED, id)
    }
}

/// An id may hold anything, a token may not: an id that does not fit is hashed, and marked so that
/// no plain id can look like it.
pub(crate) fn token(keyring: &Keyring, mark: &str, id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&id.len()) && id.bytes().all(plain) {
        id.to_owned()
    } else {
        format!("{mark}{}", keyring.keyed_hash("subject", &[id.as_bytes()]))
    }
}

/// The kind of aggregate a subject belongs to: its last token but one.
pub(crate) fn kind_of(subject: &str) -> Option<AggregateType> {
    let token = subject.rsplit('.').nth(1)?;
    AggregateType::ALL
        .iter()
        .copied()
        .find(|kind| kind.token() == token)
}

/// The ids of the organization and the aggregate, unless they are hashed.
pub(crate) fn ids_of(subject: &str) -> Option<(OrgId, &str)> {
    let mut tokens = subject.rsplit('.');
    let (id, org) = (tokens.next()?, tokens.nth(1)?);
    let is_plain = |token: &str| !token.starts_with(HASHED);
    let both = is_plain(id) && is_plain(org);
    both.then(|| (OrgId::from(org), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(id: &str) -> String {
        let subjects = Subjects::new("", Keyring::from_master(&[1; 32]));
        subjects
            .of(&StreamId::new(
                &OrgId::from("o1"),
                AggregateType::Contact,
                id,
            ))
            .to_string()
    }

    #[test]
    fn a_plain_id_is_stored_unchanged() {
        assert_eq!(subject("c-1_A"), "evt.o1.contact.c-1_A");
        assert_eq!(
            kind_of("evt.o1.contact.c-1_A"),
            Some(AggregateType::Contact)
        );
        let ids = (OrgId::from("o1"), "c-1_A");
        assert_eq!(ids_of(&subject("c-1_A")), Some(ids));
        assert_eq!(ids_of(&subject("c 1")), None);
    }

    #[test]
    fn an_id_that_could_reach_elsewhere_is_hashed() {
        for id in ["", "a.b", "*", ">", "ä", "a b", &"x".repeat(65), "~0123"] {
            let made = subject(id);
            assert!(made.starts_with("evt.o1.contact.~"), "{id:?} became {made}");
            assert_eq!(made.split('.').count(), 4);
        }
    }
}
