use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use schemas::organization::{MemberInvited, Role};
use schemas::{
    AccountId, AggregateType, Context, Event, EventId, InviteId, OrgId, Recorded, Sealed, StreamId,
};

use super::*;

const ADA: AccountId = AccountId(1);
const BOB: AccountId = AccountId(2);
/// Another account of Ada's.
const OTHER: AccountId = AccountId(3);
const MANY: usize = 100;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// An organization under test: what was decided is its past.
#[derive(Default)]
struct History(Vec<Recorded>);

impl History {
    fn founded() -> Self {
        let mut past = Self::default();
        past.record(create(OrgId::from("o1"), "Acme").unwrap());
        past
    }

    fn owned_by(account: AccountId) -> Self {
        let mut past = Self::founded();
        past.record(add_owner(account));
        past
    }

    fn record(&mut self, event: Event) {
        let sequence = self.0.len() as u64 + 1;
        self.0.push(Recorded {
            sequence,
            stream: StreamId::new(&OrgId::from("o1"), AggregateType::Organization, "o1"),
            id: EventId(uuid::Uuid::nil()),
            time: now(),
            event,
            context: Context::default(),
            receipt: None,
        });
    }

    fn organization(&self) -> Organization {
        Organization::fold(&self.0).unwrap()
    }

    fn invites(&mut self, address: &str, code: &str) {
        let made = invite(
            &self.organization(),
            invited(address, code, None),
            None,
            MANY,
            now(),
        );
        self.record(made.unwrap());
    }

    fn joins(&mut self, code: &str, account: AccountId) -> Result<(), CannotJoin> {
        let (joining, holder) = (Joining::Account(account), Some(account));
        for event in accept(&self.organization(), code, joining, holder, now())? {
            self.record(event);
        }
        Ok(())
    }
}

fn invited(address: &str, code: &str, by: Option<AccountId>) -> MemberInvited {
    MemberInvited {
        invite_id: InviteId::from(code),
        account_id: BOB,
        email: Sealed::from_ciphertext(address.to_owned()),
        email_hash: address.to_owned(),
        code_hash: code.to_owned(),
        role: Role::Owner,
        expires_at: now() + TimeDelta::days(7),
        by,
    }
}

#[test]
fn an_organization_has_a_name() {
    let event = create(OrgId::from("o1"), "  Acme ").unwrap();
    assert!(matches!(event, Event::OrganizationCreated(created) if created.name == "Acme"));
    for wrong in ["", "  ", "a\nb", &"x".repeat(201)] {
        assert_eq!(create(OrgId::from("o1"), wrong).unwrap_err().field, "name");
    }
}

#[test]
fn a_link_works_once() {
    let mut past = History::founded();
    past.invites("bob", "c1");
    assert_eq!(past.joins("c1", BOB), Ok(()));
    assert!(past.organization().has(BOB));
    assert_eq!(past.joins("c1", ADA), Err(CannotJoin::Unknown));
    assert_eq!(past.organization().members().len(), 1);
}

#[test]
fn an_invite_can_be_accepted_only_by_the_holder_of_its_address() {
    let mut past = History::founded();
    past.invites("bob", "c1");
    let organization = past.organization();
    let tried = |joining, holder| accept(&organization, "c1", joining, holder, now());
    let other = Err(CannotJoin::OtherAddress);
    assert_eq!(tried(Joining::Account(ADA), Some(BOB)), other);
    assert_eq!(tried(Joining::Account(ADA), None), other);
    let taken = tried(Joining::New(ADA), Some(BOB));
    assert_eq!(taken, Err(CannotJoin::AccountExists));
    assert!(tried(Joining::New(ADA), None).is_ok());
    assert!(tried(Joining::Account(BOB), Some(BOB)).is_ok());
}

#[test]
fn a_new_invite_of_an_address_ends_the_old_one_and_no_other() {
    let mut past = History::founded();
    past.invites("bob", "c1");
    past.invites("eve", "c2");
    past.invites("bob", "c3");
    assert_eq!(past.joins("c1", BOB), Err(CannotJoin::Unknown));
    assert_eq!(past.joins("c2", ADA), Ok(()));
    assert_eq!(past.joins("c3", BOB), Ok(()));
}

#[test]
fn an_invite_ends_by_itself_and_by_being_taken_back() {
    let mut past = History::founded();
    past.invites("bob", "c1");
    let later = now() + TimeDelta::days(7);
    let late = accept(&past.organization(), "c1", Joining::New(BOB), None, later);
    assert_eq!(late, Err(CannotJoin::Expired));
    let back = withdraw(&past.organization(), &InviteId::from("c1"), None);
    past.record(back.unwrap());
    assert_eq!(past.joins("c1", BOB), Err(CannotJoin::Unknown));
    let again = withdraw(&past.organization(), &InviteId::from("c1"), None);
    assert_eq!(again, Err(Refusal::Nobody));
}

#[test]
fn a_removed_owner_decides_nothing_more() {
    let mut past = History::owned_by(ADA);
    past.record(add_owner(BOB));
    let removed = remove(&past.organization(), ADA, Some(BOB), &[]);
    past.record(removed.unwrap());
    let organization = past.organization();
    let by_ada = invite(
        &organization,
        invited("eve", "c", Some(ADA)),
        None,
        MANY,
        now(),
    );
    assert_eq!(by_ada, Err(Refusal::NotStaff));
    let by_ada = remove(&organization, BOB, Some(ADA), &[]);
    assert_eq!(by_ada, Err(Refusal::NotStaff));
}

#[test]
fn a_removed_owner_does_not_come_back_by_a_link_of_their_own() {
    let mut past = History::owned_by(ADA);
    past.record(add_owner(BOB));
    for (address, code, by) in [
        ("ada's other", "c1", Some(ADA)),
        ("ada's third", "c2", Some(ADA)),
        ("eve", "c3", Some(BOB)),
        ("dan", "c4", None),
    ] {
        let invited = invited(address, code, by);
        let made = invite(&past.organization(), invited, None, MANY, now());
        past.record(made.unwrap());
    }
    let organization = past.organization();
    let of_ada = organization.invites_by(ADA);
    let of_ada: Vec<_> = of_ada.map(|open| open.id.as_str()).collect();
    assert_eq!(of_ada, ["c1", "c2"]);
    let removed = remove(&past.organization(), ADA, Some(BOB), &[]);
    past.record(removed.unwrap());
    for code in ["c1", "c2"] {
        assert_eq!(past.joins(code, OTHER), Err(CannotJoin::Unknown), "{code}");
    }
    assert!(!past.organization().has(OTHER));
    // The others' links still work.
    for (code, account) in [("c3", AccountId(4)), ("c4", AccountId(5))] {
        assert_eq!(past.joins(code, account), Ok(()), "{code}");
    }
    // Being invited again later does not revive the old links.
    past.invites("ada", "c5");
    assert_eq!(past.joins("c5", ADA), Ok(()));
    assert_eq!(past.joins("c1", OTHER), Err(CannotJoin::Unknown));
}

#[test]
fn the_links_of_an_owner_end_when_they_leave_or_are_forgotten() {
    for is_forgotten in [false, true] {
        let mut past = History::owned_by(ADA);
        past.record(add_owner(BOB));
        let by_ada = invited("ada's other", "c1", Some(ADA));
        let made = invite(&past.organization(), by_ada, None, MANY, now());
        past.record(made.unwrap());
        let organization = past.organization();
        past.record(if is_forgotten {
            forget(&organization, ADA).unwrap()
        } else {
            remove(&organization, ADA, Some(ADA), &[]).unwrap()
        });
        assert_eq!(past.joins("c1", OTHER), Err(CannotJoin::Unknown));
        assert!(past.organization().invites().is_empty());
    }
}

#[test]
fn a_member_is_not_invited_and_there_is_an_end_to_invites() {
    let mut past = History::owned_by(ADA);
    let of_ada = invite(
        &past.organization(),
        invited("ada", "c", None),
        Some(ADA),
        MANY,
        now(),
    );
    assert_eq!(of_ada, Err(Refusal::Member));
    past.invites("bob", "c1");
    let organization = past.organization();
    let third = invite(&organization, invited("eve", "c2", None), None, 2, now());
    assert_eq!(third, Err(Refusal::Full(2)));
    let again = invite(&organization, invited("bob", "c2", None), None, 2, now());
    assert!(again.is_ok(), "it takes the old one's place");
    let later = now() + TimeDelta::days(8);
    let third = invite(&organization, invited("eve", "c2", None), None, 2, later);
    assert!(third.is_ok(), "what has expired takes no place");
}

#[test]
fn the_forgotten_own_nothing() {
    let mut past = History::owned_by(ADA);
    past.record(add_owner(BOB));
    let organization = past.organization();
    let last = remove(&organization, BOB, None, &[ADA]);
    assert_eq!(last, Err(Refusal::LastOwner));
    assert!(forget(&organization, BOB).is_some());
    assert_eq!(forget(&organization, AccountId(3)), None);
}

proptest! {
    /// Whoever joins and leaves, in any order: once there was an owner, there is one.
    #[test]
    fn an_owner_always_remains(steps in prop::collection::vec((any::<bool>(), 1..6_u64, 1..6_u64), 0..60)) {
        let mut past = History::owned_by(ADA);
        for (nth, (joins, actor, subject)) in steps.into_iter().enumerate() {
            let (actor, subject) = (AccountId(actor), AccountId(subject));
            if joins {
                let code = format!("c{nth}");
                let invited = invited(&subject.to_string(), &code, Some(actor));
                let made = invite(&past.organization(), invited, Some(subject), MANY, now());
                if let Ok(made) = made {
                    past.record(made);
                    prop_assert_eq!(past.joins(&code, subject), Ok(()));
                }
            } else if let Ok(gone) = remove(&past.organization(), subject, Some(actor), &[]) {
                past.record(gone);
                prop_assert!(!past.organization().has(subject));
            }
            prop_assert!(!past.organization().members().is_empty());
        }
    }
}
