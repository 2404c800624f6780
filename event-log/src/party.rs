//! The party that a request belongs to.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use schemas::{AccountId, AggregateType, Event, OrgId, SYSTEM_ORG};

use crate::Write;

/// A party that asks something of the log: an organization, or a single person if what they write
/// belongs to none. Two that share a hash count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Party(pub(crate) u64);

/// What makes two requests one party's.
#[derive(Hash)]
enum PartyOf<'w> {
    Organization(&'w OrgId),
    /// Mostly the aggregate has the id of its person; each of the others is a party of its own.
    Aggregate(&'w str),
    /// All that a person writes about calls for help, which have ids of their own. It is a party
    /// beside the person's other one: many positions sent at once do not delay a call.
    CallsOf(AccountId),
}

impl Party {
    /// The party of a commit with these writes, the one that its first write belongs to. Claims
    /// count only where there is nothing else: they have another id for each value.
    pub(crate) fn of(writes: &[Write]) -> Option<Self> {
        let mut all = writes.iter();
        let own = all.find(|write| write.stream.aggregate != AggregateType::Claim);
        let write = own.or(writes.first())?;
        let stream = &write.stream;
        if stream.org.as_str() != SYSTEM_ORG {
            return Some(Self::of_organization(&stream.org));
        }
        let first = write.events.first();
        let caller = first.and_then(|first| caller(&first.event));
        Some(Self::hashed(&caller.map_or(
            PartyOf::Aggregate(stream.id.as_str()),
            PartyOf::CallsOf,
        )))
    }

    pub(crate) fn of_organization(org: &OrgId) -> Self {
        Self::hashed(&PartyOf::Organization(org))
    }

    fn hashed(whose: &PartyOf<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        whose.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The person who called for help, or answered a call.
fn caller(event: &Event) -> Option<AccountId> {
    match event {
        Event::SosTriggered(call) => Some(call.user_id),
        Event::SosAcknowledged(answered) | Event::SosResolved(answered) => Some(answered.by),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use schemas::claim::Claimed;
    use schemas::sos::{Answered, Triggered};
    use schemas::{Context, EventId, NewEvent, Sealed, SosId, StreamId};
    use uuid::Uuid;

    use super::*;
    use crate::Expected;

    const ADA: AccountId = AccountId(1);
    const BOB: AccountId = AccountId(2);

    fn write(stream: StreamId, event: Event) -> Write {
        Write {
            stream,
            expected: Expected::Empty,
            events: vec![NewEvent {
                id: EventId(Uuid::nil()),
                time: DateTime::UNIX_EPOCH,
                event,
                context: Context::default(),
                receipt: None,
            }],
        }
    }

    fn claim(id: &str) -> Write {
        let holder = id.to_owned();
        let stream = StreamId::new(&OrgId::from(SYSTEM_ORG), AggregateType::Claim, id);
        write(stream, Event::ClaimClaimed(Claimed { holder }))
    }

    /// A call for help in this organization's part of the log.
    fn call(org: &str, id: &str, user_id: AccountId) -> Write {
        let triggered = Triggered {
            sos_id: SosId::from(id),
            user_id,
            audience: Vec::new(),
            late: false,
            recorded_at: DateTime::UNIX_EPOCH,
            sealed: Sealed::from_ciphertext("c".to_owned()),
        };
        let stream = StreamId::new(&OrgId::from(org), AggregateType::Sos, id);
        write(stream, Event::SosTriggered(triggered))
    }

    fn answer(id: &str, by: AccountId) -> Write {
        let answered = Answered {
            sos_id: SosId::from(id),
            user_id: ADA,
            by,
            audience: vec![BOB],
            late: false,
            recorded_at: DateTime::UNIX_EPOCH,
            sealed: Sealed::from_ciphertext("c".to_owned()),
        };
        let stream = StreamId::new(&OrgId::from(SYSTEM_ORG), AggregateType::Sos, id);
        write(stream, Event::SosAcknowledged(answered))
    }

    fn of(writes: &[Write]) -> Party {
        Party::of(writes).unwrap()
    }

    #[test]
    fn all_calls_for_help_of_an_account_are_one_partys() {
        let of_ada = of(&[call(SYSTEM_ORG, "c1", ADA)]);
        assert_eq!(of(&[call(SYSTEM_ORG, "c2", ADA)]), of_ada);
        assert_ne!(of(&[call(SYSTEM_ORG, "c3", BOB)]), of_ada);
        // An organization that sees the call does not pay for it.
        let seen = [call(SYSTEM_ORG, "c4", ADA), call("acme", "c4", ADA)];
        assert_eq!(of(&seen), of_ada);
        // Nor does the caller for answers.
        assert_eq!(of(&[answer("c1", BOB)]), of(&[answer("c2", BOB)]));
        assert_ne!(of(&[answer("c1", BOB)]), of_ada);
        assert_eq!(of(&[answer("c1", ADA)]), of_ada);
    }

    #[test]
    fn positions_of_an_account_are_another_partys_than_its_calls() {
        let event = Event::ClaimClaimed(Claimed {
            holder: String::new(),
        });
        let of_track = of(&[write(StreamId::of_track(ADA), event.clone())]);
        let of_account = of(&[write(StreamId::of_account(ADA), event)]);
        assert_eq!(of_track, of_account);
        assert_ne!(of(&[call(SYSTEM_ORG, "c1", ADA)]), of_track);
    }

    #[test]
    fn a_claim_takes_the_turn_of_what_is_written_with_it() {
        let of_ada = of(&[call(SYSTEM_ORG, "c1", ADA)]);
        assert_eq!(of(&[claim("k1"), call(SYSTEM_ORG, "c2", ADA)]), of_ada);
        let of_acme = Party::of_organization(&OrgId::from("acme"));
        assert_eq!(of(&[claim("k2"), call("acme", "c2", BOB)]), of_acme);
        assert_ne!(of(&[claim("k1")]), of(&[claim("k2")]));
        assert_eq!(Party::of(&[]), None);
    }
}
