use schemas::account::{Forgotten, Registered, SharingPaused, SharingResumed};
use schemas::circle::MemberJoined;
use schemas::{CircleId, Context, EventId, Sealed};
use uuid::Uuid;

use super::*;

const ADA: AccountId = AccountId(7);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn said(sequence: u64, event: Event) -> Recorded {
    Recorded {
        sequence,
        stream: StreamId::of_account(ADA),
        id: EventId(Uuid::new_v4()),
        time: now(),
        event,
        context: Context::default(),
        receipt: None,
    }
}

fn registered() -> Event {
    let sealed = || Sealed::from_ciphertext(String::new());
    Event::AccountRegistered(Registered {
        account_id: ADA,
        name: sealed(),
        email: sealed(),
        password_hash: sealed(),
    })
}

fn paused() -> Event {
    Event::AccountSharingPaused(SharingPaused {
        account_id: ADA,
        until: now() + chrono::TimeDelta::hours(1),
    })
}

fn resumed() -> Event {
    Event::AccountSharingResumed(SharingResumed { account_id: ADA })
}

fn forgotten() -> Event {
    Event::AccountForgotten(Forgotten { account_id: ADA })
}

#[test]
fn every_member_whose_account_is_read_is_paid_for() {
    assert_eq!(cost(0, 0), 0);
    // An account that was only registered.
    let one = cost(1, 1);
    assert!(one > 0);
    assert_eq!(cost(10_000, 10_000), 10_000 * one);
    assert!(cost(1, 1_000) > 500 * one);
}

#[test]
fn an_account_is_read_only_if_its_last_event_does_not_say_all() {
    assert!(matches!(left_after(0, None), Left::Nothing));
    let first = said(3, registered());
    assert!(matches!(left_after(0, Some(&first)), Left::Last(_)));
    assert!(matches!(left_after(3, Some(&first)), Left::Nothing));
    let resumed = said(9, resumed());
    assert!(matches!(left_after(0, Some(&resumed)), Left::After(0)));
    assert!(matches!(left_after(3, Some(&resumed)), Left::After(3)));
    assert!(matches!(left_after(9, Some(&resumed)), Left::Nothing));
    let forgotten = said(9, forgotten());
    assert!(matches!(left_after(3, Some(&forgotten)), Left::Last(_)));
    assert!(matches!(left_after(0, Some(&forgotten)), Left::Last(_)));
}

#[test]
fn reading_everybodys_accounts_costs_no_more_than_reading_the_members() {
    assert_eq!(most_pages(0), 0);
    assert_eq!(most_pages(1), 1);
    assert_eq!(most_pages(LASTS), 1);
    assert_eq!(most_pages(10 * LASTS), 10);
}

#[test]
fn what_somebody_holds_does_not_change_when_the_original_does() {
    let mut sharing = Sharing::new(&OrgId::from("acme"));
    sharing.know(ADA, 3);
    let held = sharing.clone();
    sharing.take_in_account(&said(5, paused()));
    assert!(sharing.known.circles.hides(ADA, now()));
    assert!(!held.known.circles.hides(ADA, now()));
    assert_eq!((held.members().len(), held.known.members[&ADA]), (1, 3));
    assert_eq!(sharing.known.members[&ADA], 5);
    assert!(sharing.bytes() > held.bytes());
}

#[test]
fn an_event_of_a_member_counts_once_and_those_of_others_not_at_all() {
    let mut sharing = Sharing::new(&OrgId::from("acme"));
    sharing.take_in_account(&said(5, paused()));
    assert_eq!((sharing.applied, sharing.members().len()), (0, 0));
    sharing.know(ADA, 5);
    sharing.take_in_account(&said(5, paused()));
    assert_eq!(sharing.applied, 0);
    sharing.take_in_account(&said(6, paused()));
    sharing.take_in_account(&said(6, paused()));
    assert_eq!(sharing.applied, 1);
}

#[test]
fn a_newcomer_is_somebody_who_is_not_known() {
    let joined = |sequence, user_id| {
        let circle_id = CircleId::from("drivers");
        let joined = Event::CircleMemberJoined(MemberJoined { circle_id, user_id });
        Item::Event(Arc::new(said(sequence, joined)))
    };
    let mut sharing = Sharing::new(&OrgId::from("acme"));
    sharing.know(ADA, 3);
    let (bob, eve) = (AccountId(8), AccountId(9));
    let page = Page {
        items: vec![
            joined(4, eve),
            joined(5, ADA),
            joined(6, bob),
            joined(7, eve),
        ],
        through: 7,
        complete: true,
        bytes: 0,
    };
    assert_eq!(sharing.newcomers(&page), [bob, eve]);
}
