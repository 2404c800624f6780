//! Compares the fold with a model that searches the whole history for each query.

use proptest::prelude::*;
use schemas::account::{Forgotten, SharingPaused, SharingResumed};
use schemas::circle::{CircleOwner, MemberJoined, MemberLeft};
use schemas::{AccountId, CircleId, Event, OrgId, Recorded};

use super::tests::{History, at, sealed};
use super::*;

const ACCOUNTS: u64 = 4;
const CIRCLES: u64 = 3;

/// The last circle is an organization's.
fn owner(circle: u64) -> CircleOwner {
    if circle + 1 == CIRCLES {
        CircleOwner::Organization(OrgId::from("acme"))
    } else {
        CircleOwner::Account(AccountId(circle))
    }
}

fn circle_id(circle: u64) -> CircleId {
    CircleId::from(circle.to_string())
}

fn event() -> impl Strategy<Value = Event> {
    let account = (0..ACCOUNTS).prop_map(AccountId);
    let circle = (0..CIRCLES).prop_map(circle_id);
    prop_oneof![
        6 => (circle.clone(), account.clone()).prop_map(|(circle_id, user_id)| {
            Event::CircleMemberJoined(MemberJoined { circle_id, user_id })
        }),
        3 => (circle, account.clone()).prop_map(|(circle_id, user_id)| {
            Event::CircleMemberLeft(MemberLeft { circle_id, user_id })
        }),
        2 => (account.clone(), 0..60_i64).prop_map(|(account_id, minute)| {
            Event::AccountSharingPaused(SharingPaused { account_id, until: at(minute) })
        }),
        1 => account.clone().prop_map(|account_id| {
            Event::AccountSharingResumed(SharingResumed { account_id })
        }),
        1 => account.prop_map(|account_id| Event::AccountForgotten(Forgotten { account_id })),
    ]
}

/// One event a minute.
fn history() -> impl Strategy<Value = History> {
    prop::collection::vec(event(), 0..40).prop_map(|events| {
        let mut history = History::default();
        for circle in 0..CIRCLES {
            for event in create(circle_id(circle), owner(circle), sealed()) {
                history.add(0, event);
            }
        }
        for (minute, event) in (1..).zip(events) {
            history.add(minute, event);
        }
        history
    })
}

fn forgotten(history: &[Recorded], account: AccountId) -> bool {
    let gone = Event::AccountForgotten(Forgotten {
        account_id: account,
    });
    history.iter().any(|recorded| recorded.event == gone)
}

/// Whether the account was in the circle after all events up to that minute.
fn member(history: &[Recorded], circle: u64, account: AccountId, minute: i64) -> bool {
    let (circle_id, user_id) = (circle_id(circle), account);
    let joined = Event::CircleMemberJoined(MemberJoined { circle_id, user_id });
    let circle_id = self::circle_id(circle);
    let left = Event::CircleMemberLeft(MemberLeft { circle_id, user_id });
    let last = history.iter().rev().find(|recorded| {
        recorded.time <= at(minute) && (recorded.event == joined || recorded.event == left)
    });
    !forgotten(history, account) && last.is_some_and(|recorded| recorded.event == joined)
}

fn hidden(history: &[Recorded], account: AccountId, minute: i64) -> bool {
    let last = history
        .iter()
        .rev()
        .find_map(|recorded| match &recorded.event {
            _ if recorded.time > at(minute) => None,
            Event::AccountSharingPaused(paused) if paused.account_id == account => {
                Some(paused.until)
            }
            Event::AccountSharingResumed(resumed) if resumed.account_id == account => Some(at(-1)),
            _ => None,
        });
    last.is_some_and(|until| at(minute) < until)
}

fn shared(history: &[Recorded], viewer: &Viewer, subject: AccountId, minute: i64) -> bool {
    (0..CIRCLES).any(|circle| {
        member(history, circle, subject, minute)
            && match viewer {
                Viewer::Account(account) => member(history, circle, *account, minute),
                Viewer::Organization(org) => {
                    owner(circle) == CircleOwner::Organization(org.clone())
                }
            }
    })
}

proptest! {
    #[test]
    fn the_fold_says_what_the_history_says(
        history in history(),
        fix in 0..50_i64,
        stored: prop::sample::Index,
    ) {
        let history = history.0;
        let now = 60;
        let before = &history[..stored.index(history.len() + 1)];
        let mut circles = fold::restored(&Circles::fold(before));
        // Everything is delivered twice.
        for event in &history {
            circles.apply(event);
        }
        let accounts = || (0..ACCOUNTS).map(AccountId);
        let orgs = ["acme", "other"].map(|org| Viewer::Organization(OrgId::from(org)));
        for viewer in accounts().map(Viewer::Account).chain(orgs) {
            for subject in accounts() {
                let own = viewer == Viewer::Account(subject);
                let expected = !forgotten(&history, subject) && (own || (
                    shared(&history, &viewer, subject, now)
                        && shared(&history, &viewer, subject, fix)
                        && !hidden(&history, subject, now)
                        && !hidden(&history, subject, fix)
                ));
                let seen = circles.may_see(&viewer, subject, at(fix), at(now));
                prop_assert_eq!(seen, expected, "{:?} {:?}", viewer, subject);
            }
        }
        for account in accounts() {
            let others = accounts().filter(|other| {
                let viewer = Viewer::Account(*other);
                *other != account && shared(&history, &viewer, account, now)
            });
            prop_assert_eq!(circles.audience(account), others.collect());
            let acme = Viewer::Organization(OrgId::from("acme"));
            let in_acme = shared(&history, &acme, account, fix);
            prop_assert_eq!(circles.orgs_of(account, at(fix)).len(), usize::from(in_acme));
        }
    }
}
