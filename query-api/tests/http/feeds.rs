//! Feeds of events and positions, read from the log itself.

use std::time::Duration;

use axum::body::BodyDataStream;
use chrono::{TimeDelta, Utc};
use event_log::{Binding, Commit, Expected, Write};
use futures::StreamExt as _;
use futures::future::join_all;
use schemas::{
    AccountId, AggregateType, CircleId, Context, Event, EventId, NewEvent, StreamId, account,
    circle, location, record,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;
use uuid::Uuid;

use crate::support::TestApi;

const POSITIONS: &str = "/api/v1/locations";
/// Events arrive earlier than this.
const SOON: Duration = Duration::from_secs(20);

/// A person with an id of their own.
fn somebody() -> AccountId {
    AccountId(Uuid::new_v4().as_u64_pair().0 >> 12)
}

/// Writes something to an aggregate's stream that is no event, past the event log's own API.
async fn write_nonsense(api: &TestApi, stream: &StreamId) {
    let nats: Url = std::env::var("NATS_URL").unwrap().parse().unwrap();
    let address = (nats.host_str().unwrap(), nats.port().unwrap_or(4222));
    let mut nats_connection = BufReader::new(TcpStream::connect(address).await.unwrap());
    let (user, password) = (nats.username(), nats.password().unwrap_or_default());
    let connect = serde_json::json!({"user": user, "pass": password, "verbose": false});
    let subject = api.log.subject_of(stream);
    let answer = format!("_INBOX.{}", Uuid::new_v4().simple());
    let talk = format!("CONNECT {connect}\r\nSUB {answer} 1\r\nPUB {subject} {answer} 1\r\n?\r\n");
    nats_connection.write_all(talk.as_bytes()).await.unwrap();
    // The stream acknowledges what it has stored.
    let mut line = String::new();
    while !line.starts_with("MSG") {
        line.clear();
        let read = nats_connection.read_line(&mut line).await.unwrap();
        assert!(read > 0 && !line.starts_with("-ERR"), "{line}");
    }
}

/// A circle of the API's organization, whose events follow each other.
struct Circle<'a> {
    api: &'a TestApi,
    id: CircleId,
    last: u64,
}

impl<'a> Circle<'a> {
    async fn create(api: &'a TestApi) -> Self {
        let id = CircleId::from(Uuid::new_v4());
        let owner = circle::CircleOwner::Organization(api.org.clone());
        let binding = Binding::CircleName(owner.clone(), id.clone());
        let name = api.log.vault().seal(&binding, "Drivers").await.unwrap();
        let created = Event::CircleCreated(circle::Created {
            circle_id: id.clone(),
            owner,
            name,
        });
        let stream = StreamId::new(&api.org, AggregateType::Circle, id.as_str());
        let last = api.append(stream, created).await.sequence();
        Self { api, id, last }
    }

    async fn join(&mut self, person: AccountId) {
        let joined = circle::MemberJoined {
            circle_id: self.id.clone(),
            user_id: person,
        };
        self.append(Event::CircleMemberJoined(joined)).await;
    }

    async fn leave(&mut self, person: AccountId) {
        let left = circle::MemberLeft {
            circle_id: self.id.clone(),
            user_id: person,
        };
        self.append(Event::CircleMemberLeft(left)).await;
    }

    async fn append(&mut self, event: Event) {
        let stream = StreamId::new(&self.api.org, AggregateType::Circle, self.id.as_str());
        let after = Expected::At(self.last);
        let position = self.api.append_after(stream, after, event).await;
        self.last = position.sequence();
    }
}

/// A person sends their first position.
async fn is_somewhere(api: &TestApi, person: AccountId) {
    let recorded_at = Utc::now();
    let binding = Binding::Position(person, recorded_at);
    let place = r#"{"lat": 1.5, "lng": 2.5}"#;
    let sealed = api.log.vault().seal(&binding, place).await.unwrap();
    let updated = Event::LocationUpdated(location::Updated {
        user_id: person,
        recorded_at,
        sealed,
    });
    api.append(StreamId::of_track(person), updated).await;
}

/// A feed that goes on.
async fn follow(api: &TestApi, path: &str) -> BodyDataStream {
    let accept = [("accept", "text/event-stream")];
    let answer = api.open_answer("GET", path, &accept).await;
    assert_eq!(answer.status().as_u16(), 200);
    answer.into_body().into_data_stream()
}

/// Waits for an event about a person.
async fn tells_of(feed: &mut BodyDataStream, person: AccountId) {
    let told = format!("\"user_id\":{person}");
    let tells = async {
        loop {
            let piece = feed.next().await.unwrap().unwrap();
            let text = String::from_utf8(piece.to_vec()).unwrap();
            if text.contains(&told) {
                return;
            }
        }
    };
    timeout(SOON, tells).await.unwrap();
}

#[tokio::test]
async fn an_organization_without_members_reads_nobodys_positions() {
    let api = TestApi::open().await;
    // It would cut off a reader of everybody's.
    write_nonsense(&api, &StreamId::of_track(somebody())).await;
    let answer = api.get(POSITIONS).await;
    assert_eq!((answer.status, answer.text()), (200, String::new()));
    api.close().await;
}

#[tokio::test]
async fn a_feed_of_positions_follows_members_and_who_joins() {
    let api = TestApi::open().await;
    let (ada, bob) = (somebody(), somebody());
    let mut circle = Circle::create(&api).await;
    let mut feed = follow(&api, POSITIONS).await;
    write_nonsense(&api, &StreamId::of_track(somebody())).await;
    circle.join(ada).await;
    is_somewhere(&api, ada).await;
    tells_of(&mut feed, ada).await;
    // Another one joins, and is seen as well.
    write_nonsense(&api, &StreamId::of_track(somebody())).await;
    circle.join(bob).await;
    is_somewhere(&api, bob).await;
    tells_of(&mut feed, bob).await;
    // In the same order for those who ask later.
    let lines = api.get(POSITIONS).await.text();
    let place = |person: AccountId| lines.find(&format!("\"user_id\":{person}")).unwrap();
    assert!(place(ada) < place(bob), "{lines}");
    drop(feed);
    api.close().await;
}

/// A person's account, whose events follow each other.
struct Account<'a> {
    api: &'a TestApi,
    id: AccountId,
    last: Option<u64>,
}

impl<'a> Account<'a> {
    /// An account of which nothing was ever said.
    fn new(api: &'a TestApi) -> Self {
        let (id, last) = (somebody(), None);
        Self { api, id, last }
    }

    async fn hide(&mut self) {
        let paused = account::SharingPaused {
            account_id: self.id,
            until: Utc::now() + TimeDelta::hours(1),
        };
        self.append(Event::AccountSharingPaused(paused)).await;
    }

    async fn show(&mut self) {
        let account_id = self.id;
        let resumed = account::SharingResumed { account_id };
        self.append(Event::AccountSharingResumed(resumed)).await;
    }

    async fn append(&mut self, event: Event) {
        let (stream, after) = (StreamId::of_account(self.id), Expected::after(self.last));
        let position = self.api.append_after(stream, after, event).await;
        self.last = Some(position.sequence());
    }

    /// Whether the organization sees where this person was.
    async fn is_seen(&self) -> bool {
        let answer = self.api.get(POSITIONS).await;
        assert_eq!(answer.status, 200);
        let told = format!("\"user_id\":{}", self.id);
        answer.text().contains(&told)
    }
}

/// Others say more about themselves than is read of all accounts for a few members.
async fn others_say_much(api: &TestApi) {
    let commits = (0..2_100).map(|_| {
        let account_id = somebody();
        let resumed = account::SharingResumed { account_id };
        let event = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: Utc::now(),
            event: Event::AccountSharingResumed(resumed),
            context: Context::default(),
            receipt: None,
        };
        Commit::from(Write {
            stream: StreamId::of_account(account_id),
            expected: Expected::Empty,
            events: vec![event],
        })
    });
    for outcome in api.log.commit_each(commits.collect()).await {
        outcome.unwrap();
    }
}

#[tokio::test]
async fn who_hides_or_leaves_is_not_seen_by_what_was_known_before() {
    let api = TestApi::open().await;
    let (mut circle, mut ada) = (Circle::create(&api).await, Account::new(&api));
    assert!(!ada.is_seen().await);
    circle.join(ada.id).await;
    is_somewhere(&api, ada.id).await;
    assert!(ada.is_seen().await);
    for much_is_said in [false, true] {
        if much_is_said {
            others_say_much(&api).await;
        }
        ada.hide().await;
        assert!(!ada.is_seen().await, "{much_is_said}");
        ada.show().await;
        assert!(ada.is_seen().await, "{much_is_said}");
    }
    circle.leave(ada.id).await;
    assert!(!ada.is_seen().await);
    circle.join(ada.id).await;
    assert!(ada.is_seen().await);
    let account_id = ada.id;
    let forgotten = account::Forgotten { account_id };
    ada.append(Event::AccountForgotten(forgotten)).await;
    assert!(!ada.is_seen().await);
    api.close().await;
}

#[tokio::test]
async fn what_members_said_before_they_joined_counts() {
    let api = TestApi::open().await;
    let mut circle = Circle::create(&api).await;
    let (mut hidden, mut shown) = (Account::new(&api), Account::new(&api));
    let mut gone = Account::new(&api);
    let account_id = gone.id;
    gone.hide().await;
    is_somewhere(&api, gone.id).await;
    let forgotten = account::Forgotten { account_id };
    gone.append(Event::AccountForgotten(forgotten)).await;
    circle.join(gone.id).await;
    shown.hide().await;
    shown.show().await;
    hidden.hide().await;
    for person in [&hidden, &shown] {
        circle.join(person.id).await;
        is_somewhere(&api, person.id).await;
    }
    assert!(!hidden.is_seen().await);
    assert!(shown.is_seen().await);
    assert!(!gone.is_seen().await);
    api.close().await;
}

#[tokio::test]
async fn readers_that_begin_at_once_see_the_same_members() {
    const MEMBERS: usize = 40;
    let api = TestApi::open().await;
    let mut circle = Circle::create(&api).await;
    for _ in 0..MEMBERS {
        let mut member = Account::new(&api);
        member.show().await;
        circle.join(member.id).await;
        is_somewhere(&api, member.id).await;
    }
    let answers = join_all((0..8).map(|_| api.get(POSITIONS))).await;
    for answer in answers {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.text().lines().count(), MEMBERS);
    }
    api.close().await;
}

async fn delete_contact(api: &TestApi, id: &str) {
    let stream = StreamId::new(&api.org, AggregateType::Contact, id);
    let deleted = record::Deleted { id: id.into() };
    api.append(stream, Event::ContactDeleted(deleted)).await;
}

/// Returns the lines of a feed, and whether it was cut off.
async fn read(api: &TestApi, path: &str) -> (Vec<String>, bool) {
    let answer = api.open_answer("GET", path, &[]).await;
    assert_eq!(answer.status().as_u16(), 200);
    let mut pieces = answer.into_body().into_data_stream();
    let (mut text, mut is_cut) = (String::new(), false);
    while let Some(piece) = timeout(SOON, pieces.next()).await.unwrap() {
        match piece {
            Ok(piece) => text.push_str(std::str::from_utf8(&piece).unwrap()),
            Err(_) => is_cut = true,
        }
    }
    (text.lines().map(str::to_owned).collect(), is_cut)
}

#[tokio::test]
async fn what_precedes_an_event_that_cannot_be_read_is_sent() {
    let api = TestApi::open().await;
    delete_contact(&api, "first").await;
    let odd = StreamId::new(&api.org, AggregateType::Contact, "odd");
    write_nonsense(&api, &odd).await;
    delete_contact(&api, "last").await;
    let contacts = "/api/v1/events?types=contact.*";
    let (lines, is_cut) = read(&api, contacts).await;
    assert_eq!((lines.len(), is_cut), (1, true), "{lines:?}");
    assert!(lines[0].contains("\"first\""), "{lines:?}");
    // It is in nobody's way who does not ask for it.
    for (asked, count) in [("types=contact.*&limit=1", 1), ("types=key.*", 1)] {
        let (lines, is_cut) = read(&api, &format!("/api/v1/events?{asked}")).await;
        assert_eq!((lines.len(), is_cut), (count, false), "{asked}: {lines:?}");
    }
    api.close().await;
}
