//! Feeds of events and positions, read from the log itself.

use std::time::Duration;

use axum::body::BodyDataStream;
use chrono::Utc;
use event_log::{Binding, Expected};
use futures::StreamExt as _;
use schemas::{AccountId, AggregateType, CircleId, Event, StreamId, circle, location, record};
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
        let joined = Event::CircleMemberJoined(circle::MemberJoined {
            circle_id: self.id.clone(),
            user_id: person,
        });
        let stream = StreamId::new(&self.api.org, AggregateType::Circle, self.id.as_str());
        let after = Expected::At(self.last);
        let position = self.api.append_after(stream, after, joined).await;
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
