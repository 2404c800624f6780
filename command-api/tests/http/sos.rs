//! Calls for help, and answers to them.

use chrono::DateTime;
use event_log::{Binding, EventLog, Expected, Write};
use schemas::account::Registered;
use schemas::circle::{CircleOwner, Created, MemberJoined};
use schemas::sos::{Answered, Triggered};
use schemas::{
    AccountId, AggregateType, CircleId, Context, Event, EventId, NewEvent, OrgId, SYSTEM_ORG,
    Sealed, SosId, StreamId, TokenId,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, TestApi, connect_log};
use crate::wiretap::Wiretap;

/// Requests of a free account in an hour.
const REQUESTS: usize = 100;
/// How many of those who are alerted are answered with their names.
const NAMED: u64 = 1_000;
/// As many events at a time as a loaded machine stores before the log's timeout.
const AT_A_TIME: usize = 250;

/// A person with an access token.
struct Person<'h> {
    api: &'h TestApi,
    authorization: String,
}

impl<'h> Person<'h> {
    fn of(api: &'h TestApi) -> Self {
        Self::with_account(api, new_account())
    }

    fn with_account(api: &'h TestApi, account: AccountId) -> Self {
        let id = TokenId::from(Uuid::new_v4());
        let token = api.access.make_token(account, &id, 0).access_token;
        Self {
            api,
            authorization: format!("Bearer {token}"),
        }
    }

    async fn send(&self, method: &str, path: &str, key: Option<&str>) -> Answer {
        let mut headers = vec![("authorization", self.authorization.as_str())];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        self.api.send_with(method, path, &headers, "").await
    }

    /// Calls for help. Returns the path that ends the call.
    async fn calls(&self) -> String {
        let called = self.send("POST", "/sos/trigger", None).await;
        assert_eq!(called.status, 202, "{}", called.body);
        format!("/sos/{}/resolve", called.text("sos_id"))
    }
}

/// An account that nobody has, nor any of the many after it.
fn new_account() -> AccountId {
    AccountId(Uuid::new_v4().as_u64_pair().0 >> 12)
}

/// So many accounts after this one.
fn others(account: AccountId, count: u64) -> Vec<AccountId> {
    (1..=count).map(|n| AccountId(account.0 + n)).collect()
}

/// The stream of an aggregate in persons' part of the log.
fn persons(kind: AggregateType, id: &str) -> StreamId {
    StreamId::new(&OrgId::from(SYSTEM_ORG), kind, id)
}

/// Writes the events of a new aggregate.
async fn write(log: &EventLog, stream: &StreamId, events: &[Event]) {
    let new = |event: &Event| NewEvent {
        id: EventId(Uuid::new_v4()),
        time: DateTime::UNIX_EPOCH,
        event: event.clone(),
        context: Context::default(),
        receipt: None,
    };
    let mut last = None;
    for some in events.chunks(AT_A_TIME) {
        let write = Write {
            stream: stream.clone(),
            expected: Expected::after(last),
            events: some.iter().map(new).collect(),
        };
        last = Some(log.commit(write.into()).await.unwrap().sequence());
    }
}

async fn register(log: &EventLog, account_id: AccountId, name: &str) {
    let binding = Binding::Name(account_id);
    let registered = Event::AccountRegistered(Registered {
        account_id,
        name: log.vault().seal(&binding, name).await.unwrap(),
        email: Sealed::from_ciphertext(String::new()),
        password_hash: Sealed::from_ciphertext(String::new()),
    });
    write(log, &StreamId::of_account(account_id), &[registered]).await;
}

/// Writes a circle of this person and others.
async fn share_circle(log: &EventLog, person: AccountId, others: &[AccountId]) {
    let circle_id = CircleId::from(Uuid::new_v4());
    let created = Event::CircleCreated(Created {
        circle_id: circle_id.clone(),
        owner: CircleOwner::Account(person),
        name: Sealed::from_ciphertext(String::new()),
    });
    let joined = |user_id: &AccountId| {
        Event::CircleMemberJoined(MemberJoined {
            circle_id: circle_id.clone(),
            user_id: *user_id,
        })
    };
    let members = [person];
    let members = members.iter().chain(others).map(joined);
    let events: Vec<Event> = std::iter::once(created).chain(members).collect();
    let stream = persons(AggregateType::Circle, circle_id.as_str());
    write(log, &stream, &events).await;
}

#[tokio::test]
async fn everybody_who_is_alerted_is_listed_and_the_first_thousand_by_name() {
    let (log, caller) = (connect_log().await, new_account());
    let others = others(caller, NAMED + 1);
    let (first, last) = (others[0], others[others.len() - 1]);
    for account in [first, last] {
        register(&log, account, "Bob").await;
    }
    share_circle(&log, caller, &others).await;
    let api = TestApi::open().await;
    let caller = Person::with_account(&api, caller);
    let called = caller.send("POST", "/sos/trigger", None).await;
    assert_eq!(called.status, 202, "{}", called.body);
    let called = called.json();
    let audience = called["audience"].as_array().unwrap();
    assert_eq!(audience.len(), others.len());
    assert_eq!(audience[0], json!({"id": first, "name": "Bob"}));
    let unnamed = &audience[others.len() - 1];
    assert_eq!(*unnamed, json!({"id": last, "name": null}));
}

/// The connection of outside readers gives way to everything else.
#[tokio::test]
async fn the_names_of_the_first_who_are_alerted_are_not_read_as_for_an_outside_reader() {
    const FIRST: usize = 32;
    let (log, caller) = (connect_log().await, new_account());
    let others = others(caller, 40);
    share_circle(&log, caller, &others).await;
    let api = TestApi::open().await;
    let mut reads = Wiretap::on("EVENTS").await;
    let caller = Person::with_account(&api, caller);
    let called = caller.send("POST", "/sos/trigger", None).await;
    assert_eq!(called.status, 202, "{}", called.body);
    let reads = reads.until_now().await;
    let connection = |account: &AccountId| {
        let account = log.subject_of(&StreamId::of_account(*account));
        let read = reads.iter().find(|read| {
            let query: Value = serde_json::from_slice(&read.payload).unwrap_or_default();
            query["next_by_subj"] == account.as_str()
        });
        // Answers come to an inbox of the connection.
        let inbox = read?.reply.as_ref()?;
        Some(inbox.rsplit_once('.')?.0.to_owned())
    };
    let connections: Vec<_> = others.iter().map(connection).collect();
    let (first, rest) = connections.split_at(FIRST);
    assert!(first[0].is_some());
    assert!(first.iter().all(|one| *one == first[0]), "{first:?}");
    assert!(rest.iter().all(|one| *one != first[0]), "{rest:?}");
}

/// Each answer repeats the whole audience, so these do not fit into one page.
#[tokio::test]
async fn an_answer_builds_on_all_earlier_ones_however_large_they_are() {
    const ANSWERED: usize = 20;
    let api = TestApi::open().await;
    let (log, user_id) = (api.commands.log(), new_account());
    let audience = others(user_id, 10_000);
    let sos_id = SosId::from(Uuid::new_v4());
    let recorded_at = DateTime::UNIX_EPOCH;
    let sealed = Sealed::from_ciphertext(String::new());
    let triggered = Event::SosTriggered(Triggered {
        sos_id: sos_id.clone(),
        user_id,
        audience: audience.clone(),
        late: false,
        recorded_at,
        sealed: sealed.clone(),
    });
    let acknowledged = audience[..ANSWERED].iter().map(|by| {
        Event::SosAcknowledged(Answered {
            sos_id: sos_id.clone(),
            user_id,
            by: *by,
            audience: audience.clone(),
            late: false,
            recorded_at,
            sealed: sealed.clone(),
        })
    });
    let events: Vec<Event> = std::iter::once(triggered).chain(acknowledged).collect();
    let stream = persons(AggregateType::Sos, sos_id.as_str());
    write(log, &stream, &events).await;

    let answers = async |account: AccountId, answer: &'static str| {
        let path = format!("/sos/{sos_id}/{answer}");
        let person = Person::with_account(&api, account);
        let answered = person.send("POST", &path, None).await;
        assert_eq!(answered.status, 200, "{}", answered.body);
        log.load(&stream).await.unwrap().len()
    };
    let written = events.len();
    for before in [0, ANSWERED / 2, ANSWERED - 1] {
        assert_eq!(answers(audience[before], "acknowledge").await, written);
    }
    for _ in 0..2 {
        let next = audience[ANSWERED];
        assert_eq!(answers(next, "acknowledge").await, written + 1);
    }
    assert_eq!(answers(user_id, "resolve").await, written + 2);
    let late = audience[ANSWERED + 1];
    assert_eq!(answers(late, "acknowledge").await, written + 2);
}

#[tokio::test]
async fn answering_a_call_for_help_has_no_limit_and_counts_as_nothing() {
    let api = TestApi::open().await;
    let ada = Person::of(&api);
    let resolve = ada.calls().await;
    for _ in 0..=REQUESTS {
        let resolved = ada.send("POST", &resolve, None).await;
        assert_eq!(resolved.status, 200, "{}", resolved.body);
        assert_eq!(resolved.header("ratelimit"), None);
    }
    let unknown = ada.send("POST", "/sos/none/acknowledge", None).await;
    assert_eq!(unknown.status, 404, "{}", unknown.body);
    assert_eq!(unknown.header("ratelimit"), None);
    let counted = ada.send("DELETE", "/circles/none/members/me", None).await;
    assert_eq!(counted.status, 404, "{}", counted.body);
    let left = counted.header("ratelimit").unwrap();
    assert!(left.starts_with("\"requests\";r=99;"), "{left}");
}

#[tokio::test]
async fn an_answer_that_was_given_before_writes_nothing_whatever_its_key() {
    let api = TestApi::open().await;
    let ada = Person::of(&api);
    let resolve = ada.calls().await;
    let first = ada.send("POST", &resolve, None).await;
    assert_eq!(first.status, 200, "{}", first.body);
    for key in ["k1", "k2", "k1"] {
        let again = ada.send("POST", &resolve, Some(key)).await;
        assert_eq!(again.body, first.body);
        assert_eq!(again.position(), first.position());
    }
}

#[tokio::test]
async fn a_repeat_of_an_answer_is_answered_as_the_first_time() {
    let api = TestApi::open().await;
    let ada = Person::of(&api);
    let resolve = ada.calls().await;
    let first = ada.send("POST", &resolve, Some("k")).await;
    assert_eq!(first.status, 200, "{}", first.body);
    let again = ada.send("POST", &resolve, Some("k")).await;
    assert_eq!(again.status, 200, "{}", again.body);
    assert_eq!(again.body, first.body);
    assert_eq!(again.position(), first.position());
    let other = ada.calls().await;
    let refused = ada.send("POST", &other, Some("k")).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
}
