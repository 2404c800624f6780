use chrono::{DateTime, TimeDelta, Utc};
use schemas::account::{Forgotten, SharingPaused, SharingResumed};
use schemas::circle::CircleOwner;
use schemas::{
    AccountId, AggregateType, CircleId, Context, Event, EventId, OrgId, PlaceId, Recorded, Sealed,
    StreamId,
};
use serde_json::json;

use super::*;

const ADA: AccountId = AccountId(1);
const BOB: AccountId = AccountId(2);
const EVE: AccountId = AccountId(3);

pub(super) fn at(minute: i64) -> DateTime<Utc> {
    let start: DateTime<Utc> = "2026-11-21T12:00:00Z".parse().unwrap();
    start + TimeDelta::minutes(minute)
}

/// A history, one event after another.
#[derive(Debug, Default)]
pub(super) struct History(pub(super) Vec<Recorded>);

impl History {
    pub(super) fn add(&mut self, minute: i64, event: Event) {
        self.0.push(Recorded {
            sequence: self.0.len() as u64 + 1,
            stream: StreamId::new(&OrgId::from("_"), AggregateType::Circle, "any"),
            id: EventId(uuid::Uuid::nil()),
            time: at(minute),
            event,
            context: Context::default(),
            receipt: None,
        });
    }

    pub(super) fn circle(&mut self, minute: i64, id: &str, owner: CircleOwner) {
        for event in create(CircleId::from(id), owner, sealed()) {
            self.add(minute, event);
        }
    }

    fn joins(&mut self, minute: i64, id: &str, account: AccountId) {
        let circle = Circle::fold(&self.0).unwrap();
        let code = format!("code {minute}");
        let invite = invite(Some(&circle), None, code.clone(), at(minute + 1));
        let invite = invite.or_else(|_| {
            let member = circle.members().next();
            super::invite(Some(&circle), member, code.clone(), at(minute + 1))
        });
        self.add(minute, invite.unwrap());
        let circle = Circle::fold(self.0.iter().filter(|e| in_circle(e, id))).unwrap();
        let joined = join(Some(&circle), account, &code, at(minute)).unwrap();
        self.add(minute, joined.unwrap());
    }
}

fn in_circle(recorded: &Recorded, id: &str) -> bool {
    let data = serde_json::from_slice(&recorded.event.encode().unwrap());
    let data: serde_json::Value = data.unwrap();
    data["circleId"] == id || data["circle_id"] == id
}

pub(super) fn sealed() -> Sealed {
    Sealed::from_ciphertext("sealed".to_owned())
}

fn family() -> History {
    let mut history = History::default();
    history.circle(0, "family", CircleOwner::Account(ADA));
    history.joins(10, "family", BOB);
    history
}

fn sees(circles: &Circles, viewer: AccountId, subject: AccountId, fix: i64, now: i64) -> bool {
    circles.may_see(&Viewer::Account(viewer), subject, at(fix), at(now))
}

#[test]
fn members_see_each_other_from_joining_to_leaving() {
    let mut history = family();
    let circles = Circles::fold(&history.0);
    assert!(sees(&circles, ADA, BOB, 10, 20) && sees(&circles, BOB, ADA, 15, 20));
    assert!(!sees(&circles, BOB, ADA, 9, 20), "before joining");
    assert!(sees(&circles, ADA, ADA, 0, 20), "oneself");
    assert!(!sees(&circles, EVE, ADA, 15, 20), "a stranger");
    assert_eq!(circles.audience(ADA).into_iter().collect::<Vec<_>>(), [BOB]);

    let circle = Circle::fold(&history.0);
    history.add(30, leave(circle.as_ref(), BOB).unwrap());
    let circles = Circles::fold(&history.0);
    for fix in [15, 30, 31] {
        assert!(!sees(&circles, ADA, BOB, fix, 31), "gone");
        // A slow clock changes nothing.
        assert!(!sees(&circles, BOB, ADA, fix, 29), "gone");
    }
    assert!(circles.audience(ADA).is_empty());
    assert_eq!(circles.circles_of(BOB).count(), 0);
}

#[test]
fn an_organization_sees_the_members_of_its_circles_only() {
    let mut history = History::default();
    let acme = OrgId::from("acme");
    history.circle(0, "team", CircleOwner::Organization(acme.clone()));
    history.joins(10, "team", BOB);
    let circles = Circles::fold(&history.0);
    let sees = |org: &str, fix| {
        let viewer = Viewer::Organization(OrgId::from(org));
        circles.may_see(&viewer, BOB, at(fix), at(20))
    };
    assert!(sees("acme", 10) && !sees("acme", 9) && !sees("other", 10));
    assert_eq!(
        circles.orgs_of(BOB, at(10)).into_iter().collect::<Vec<_>>(),
        [&acme]
    );
    assert!(circles.orgs_of(BOB, at(9)).is_empty());
    assert!(circles.current_orgs_of(ADA).is_empty());
}

#[test]
fn nobody_sees_who_hides() {
    let mut history = family();
    let (account_id, until) = (BOB, at(30));
    history.add(
        20,
        Event::AccountSharingPaused(SharingPaused { account_id, until }),
    );
    let circles = Circles::fold(&history.0);
    assert!(!sees(&circles, ADA, BOB, 25, 25), "hidden");
    assert!(!sees(&circles, ADA, BOB, 15, 25), "sent while hidden");
    assert!(!sees(&circles, ADA, BOB, 25, 40), "made while hidden");
    assert!(sees(&circles, ADA, BOB, 30, 40) && sees(&circles, ADA, BOB, 15, 40));
    assert!(sees(&circles, BOB, BOB, 25, 25), "oneself");

    history.add(
        22,
        Event::AccountSharingResumed(SharingResumed { account_id }),
    );
    let circles = Circles::fold(&history.0);
    assert!(sees(&circles, ADA, BOB, 23, 24) && !sees(&circles, ADA, BOB, 21, 24));
}

#[test]
fn who_was_forgotten_is_nowhere() {
    let mut history = family();
    let circle = Circle::fold(&history.0);
    let place = add_place(circle.as_ref(), BOB, PlaceId::from("p"), sealed()).unwrap();
    history.add(20, place);
    assert_eq!(Circles::fold(&history.0).places_of(ADA).count(), 1);
    history.add(30, Event::AccountForgotten(Forgotten { account_id: BOB }));
    let circles = Circles::fold(&history.0);
    assert!(!sees(&circles, ADA, BOB, 15, 40) && !sees(&circles, BOB, BOB, 15, 40));
    assert!(circles.is_forgotten(BOB) && circles.audience(ADA).is_empty());
    assert_eq!(circles.watched_places().count(), 0);
}

#[test]
fn a_code_works_until_it_expires_and_joining_twice_is_the_same() {
    let mut history = family();
    let circle = Circle::fold(&history.0);
    let made = invite(circle.as_ref(), Some(BOB), "hash".to_owned(), at(60)).unwrap();
    history.add(20, made);
    let circle = Circle::fold(&history.0);
    let joins = |who, code, minute| join(circle.as_ref(), who, code, at(minute));
    assert!(joins(EVE, "hash", 59).unwrap().is_some());
    assert_eq!(joins(EVE, "hash", 60), Err(CannotJoin::Expired));
    assert_eq!(joins(EVE, "other", 20), Err(CannotJoin::UnknownCode));
    assert_eq!(
        join(None, EVE, "hash", at(20)),
        Err(CannotJoin::UnknownCode)
    );
    assert_eq!(joins(BOB, "hash", 70), Ok(None));
}

#[test]
fn the_fold_of_all_circles_keeps_no_invites() {
    let mut history = family();
    let family = CircleId::from("family");
    let folded = |history: &History| Circles::fold(&history.0).circle(&family).cloned();
    let before = folded(&history);
    for minute in 0..100 {
        let circle = Circle::fold(&history.0);
        let made = invite(circle.as_ref(), Some(BOB), minute.to_string(), at(minute));
        history.add(minute, made.unwrap());
    }
    assert_eq!(folded(&history), before);
}

#[test]
fn a_stranger_can_do_nothing_and_learns_nothing() {
    let circle = Circle::fold(&family().0);
    let circle = circle.as_ref();
    assert_eq!(leave(circle, EVE), Err(NotMember));
    assert_eq!(leave(None, EVE), Err(NotMember));
    let place = PlaceId::from("p");
    assert_eq!(
        add_place(circle, EVE, place.clone(), sealed()),
        Err(NotMember)
    );
    assert_eq!(remove_place(circle, EVE, &place), Err(NotMember));
    assert_eq!(remove_place(circle, ADA, &place), Ok(None));
    for by in [Some(EVE), None] {
        assert_eq!(invite(circle, by, "h".to_owned(), at(9)), Err(NotMember));
    }
}

#[test]
fn a_place_has_a_name_a_middle_and_a_sensible_radius() {
    let place = json!({"name": " Home ", "lat": 52.5, "lng": 13.4, "radius_m": 100});
    let read = PlaceRequest::parse(place.clone()).unwrap();
    assert_eq!((read.name.as_str(), read.radius_m), ("Home", 100.0));
    for (field, wrong) in [
        ("name", json!("")),
        ("name", json!("x".repeat(201))),
        ("lat", json!(91)),
        ("lng", json!(null)),
        ("radius_m", json!(9)),
        ("radius_m", json!(100_001)),
    ] {
        let mut body = place.clone();
        body[field] = wrong;
        let invalid = PlaceRequest::parse(body).unwrap_err();
        assert_eq!(invalid.errors()[0].field, field);
    }
}

#[test]
fn a_pause_ends_in_the_future_and_is_said_once() {
    assert!(PauseRequest::parse(json!({})).is_err());
    let request = PauseRequest::parse(json!({"until": at(30)})).unwrap();
    assert!(pause(BOB, &Pauses::default(), request, at(30)).is_err());
    let paused = pause(BOB, &Pauses::default(), request, at(0)).unwrap();
    let mut history = History::default();
    history.add(0, paused.unwrap());
    let pauses = Pauses::fold(&history.0);
    assert_eq!(pause(BOB, &pauses, request, at(1)), Ok(None));
    let longer = PauseRequest { until: at(60) };
    assert!(pause(BOB, &pauses, longer, at(1)).unwrap().is_some());
    assert!(resume(BOB, &pauses, at(1)).is_some());
    assert_eq!(resume(BOB, &pauses, at(30)), None);
}

#[test]
fn a_circle_has_so_many_members_places_and_open_invites() {
    let bounds = Bounds {
        members: 2,
        places: 1,
        invites: 1,
    };
    let mut history = History::default();
    history.circle(0, "family", CircleOwner::Account(ADA));
    let folded = |history: &History| Circle::fold(&history.0);
    let circle = folded(&history);
    assert_eq!(bounds.one_more_member(circle.as_ref(), EVE), Ok(()));
    assert_eq!(bounds.one_more_place(circle.as_ref()), Ok(()));
    assert_eq!(bounds.one_more_invite(circle.as_ref(), at(1)), Ok(()));
    history.joins(1, "family", BOB);
    let place = PlaceId::from("p");
    let added = add_place(folded(&history).as_ref(), BOB, place.clone(), sealed());
    history.add(1, added.unwrap());
    let circle = folded(&history);
    let (one_more, circle) = (Full::Members(2), circle.as_ref());
    assert_eq!(bounds.one_more_member(circle, EVE), Err(one_more));
    assert_eq!(bounds.one_more_place(circle), Err(Full::Places(1)));
    assert_eq!(bounds.one_more_invite(circle, at(1)), Err(Full::Invites(1)));
    // An expired invite makes room.
    assert_eq!(bounds.one_more_invite(circle, at(2)), Ok(()));
    let removed = remove_place(circle, BOB, &place).unwrap().unwrap();
    let left = leave(circle, BOB).unwrap();
    history.add(3, removed);
    history.add(3, left);
    let circle = folded(&history);
    assert_eq!(bounds.one_more_member(circle.as_ref(), EVE), Ok(()));
    assert_eq!(bounds.one_more_place(circle.as_ref()), Ok(()));
}

#[test]
fn a_person_joins_a_circle_so_many_times() {
    let bounds = Bounds {
        members: 3,
        places: 1,
        invites: 1,
    };
    let mut history = History::default();
    history.circle(0, "family", CircleOwner::Account(ADA));
    for _ in 0..JOINS {
        let circle = Circle::fold(&history.0);
        assert_eq!(bounds.one_more_member(circle.as_ref(), BOB), Ok(()));
        history.joins(1, "family", BOB);
        let left = leave(Circle::fold(&history.0).as_ref(), BOB).unwrap();
        history.add(1, left);
    }
    let circle = Circle::fold(&history.0);
    let again = bounds.one_more_member(circle.as_ref(), BOB);
    assert_eq!(again, Err(Full::Joins(JOINS)));
    assert_eq!(bounds.one_more_member(circle.as_ref(), EVE), Ok(()));
}

#[test]
fn who_made_circles_is_known_with_how_many_and_which() {
    let (ada, shop) = (
        CircleOwner::Account(ADA),
        CircleOwner::Organization("shop".into()),
    );
    let mut history = History::default();
    history.circle(0, "a", ada.clone());
    history.circle(1, "b", ada.clone());
    history.circle(2, "c", shop.clone());
    let twice = Circles::fold(history.0.iter().chain(&history.0));
    assert_eq!((twice.made_by(&ada), twice.made_by(&shop)), (2, 1));
    history.add(9, Event::AccountForgotten(Forgotten { account_id: ADA }));
    let circles = Circles::fold(&history.0);
    assert_eq!((circles.made_by(&ada), circles.made_by(&shop)), (0, 1));
    for (org, made) in [("shop", &["c"][..]), ("other", &[])] {
        let org = OrgId::from(org);
        let of_org = circles.of_organization(&org);
        assert!(
            of_org
                .map(|circle| circle.id.as_str())
                .eq(made.iter().copied())
        );
    }
}
