//! What the operator's command line does, without HTTP.

use command_api::{CommandError, Origin, organizations, records, secrets, workflows};
use domain::account::Email;
use domain::record::{Columns, Kind};
use event_log::Binding;
use futures::stream;
use schemas::{AccountId, AggregateType, Context, Event, OrgId, StreamId};
use serde_json::json;

use crate::support::House;

static OPERATOR: Origin = Origin {
    context: Context {
        correlation_id: None,
        causation_id: None,
        traceparent: None,
        hops: 0,
    },
    receipt: None,
};

fn new_email() -> Email {
    Email::parse(&format!("{}@example.org", uuid::Uuid::new_v4())).unwrap()
}

async fn owner_of(house: &House, org: &OrgId) -> AccountId {
    let stream = StreamId::new(org, AggregateType::Organization, org.as_str());
    let events = house.commands.log().load(&stream).await.unwrap();
    let owner = events.iter().find_map(|recorded| match &recorded.event {
        Event::OrganizationMemberAdded(added) => Some(added.account_id),
        _ => None,
    });
    owner.unwrap()
}

#[tokio::test]
async fn an_owner_gets_an_account_once() {
    let (house, email) = (House::open().await, new_email());
    let found = |name| organizations::create(&house.commands, &OPERATOR, name, Some(&email));
    let first = found("First").await.unwrap().answer;
    let second = found("Second").await.unwrap().answer;
    assert_eq!(first.owner_password.unwrap().len(), 20);
    assert_eq!(second.owner_password, None, "the account was there already");
    let owner = owner_of(&house, &first.org_id).await;
    assert_eq!(owner, owner_of(&house, &second.org_id).await);

    let account = StreamId::of_account(owner);
    let events = house.commands.log().load(&account).await.unwrap();
    let Event::AccountRegistered(registered) = &events[0].event else {
        panic!("{events:?}");
    };
    let vault = house.commands.log().vault();
    let read = vault
        .unseal(&Binding::Email(owner), &registered.email)
        .await
        .unwrap();
    assert_eq!(read, email.as_str());
    assert!(!registered.email.ciphertext().contains("example"));
}

#[tokio::test]
async fn founders_who_meet_on_one_address_share_the_account() {
    let (house, email) = (House::open().await, new_email());
    let found = |_| organizations::create(&house.commands, &OPERATOR, "Org", Some(&email));
    let founded = futures::future::join_all((0..4).map(found)).await;
    let founded: Vec<_> = founded
        .into_iter()
        .map(|done| done.unwrap().answer)
        .collect();
    let with_password = founded.iter().filter(|org| org.owner_password.is_some());
    assert_eq!(with_password.count(), 1);
    let owner = owner_of(&house, &founded[0].org_id).await;
    for org in &founded {
        assert_eq!(owner_of(&house, &org.org_id).await, owner);
    }
}

#[tokio::test]
async fn an_organization_needs_a_name_and_no_owner() {
    let house = House::open().await;
    let founded = organizations::create(&house.commands, &OPERATOR, "Org", None).await;
    assert_eq!(founded.unwrap().answer.owner_password, None);
    let nameless = organizations::create(&house.commands, &OPERATOR, " ", None).await;
    assert!(matches!(nameless, Err(CommandError::Refused(error)) if error.field == "name"));
}

#[tokio::test]
async fn a_secret_is_sealed() {
    let house = House::open().await;
    let set = |name, value| secrets::set(&house.commands, &OPERATOR, &house.org, name, value);
    set("TOKEN", "first").await.unwrap();
    set("TOKEN", "second").await.unwrap();
    assert!(set("NO-NAME", "x").await.is_err());
    assert!(set("EMPTY", "").await.is_err());
    let events = house.events(AggregateType::Secret, "TOKEN").await;
    let Event::SecretSet(last) = &events[1].event else {
        panic!("{events:?}");
    };
    let binding = Binding::Secret(house.org.clone(), last.name.clone());
    let vault = house.commands.log().vault();
    assert_eq!(vault.unseal(&binding, &last.value).await.unwrap(), "second");
}

#[tokio::test]
async fn a_workflow_takes_its_id_from_wherever_it_stands() {
    let house = House::open().await;
    let put = |id: Option<&str>, document| {
        let id = id.map(Into::into);
        workflows::put(&house.commands, &OPERATOR, &house.org, id, document)
    };
    let document = json!({"workflowId": "own", "name": "W", "status": "DRAFT", "steps": []});
    let own = put(None, document.clone()).await.unwrap().answer;
    assert_eq!((own.workflow_id.as_str(), own.version), ("own", 1));
    assert!(put(Some("other"), document).await.is_err());
    let nameless = json!({"name": "W", "status": "DRAFT", "steps": []});
    let (one, two) = (put(None, nameless.clone()).await, put(None, nameless).await);
    assert_ne!(
        one.unwrap().answer.workflow_id,
        two.unwrap().answer.workflow_id
    );
}

#[tokio::test]
async fn a_file_comes_in_row_by_row() {
    let house = House::open().await;
    let columns = Columns::new(Kind::Contacts, ["id", "firstName"]).unwrap();
    let row = |number: u64, id: &str, name: &str| records::Row {
        number,
        draft: columns.draft([id, name]).map_err(|error| error.to_string()),
    };
    let mut rows: Vec<_> = (1..=1_500)
        .map(|nth| row(nth, &format!("c{nth}"), "A"))
        .collect();
    rows.push(row(1_501, "c1", "A"));
    rows.push(row(1_502, "c2", "B"));
    rows.push(row(1_503, "c3", ""));
    let import = records::Import {
        commands: &house.commands,
        origin: &OPERATOR,
        org: &house.org,
        kind: Kind::Contacts,
    };
    let mut rejected = Vec::new();
    let done = records::import(import, stream::iter(rows), |_, some| {
        rejected.extend_from_slice(some);
    });
    let done = done.await.unwrap();
    assert_eq!(
        (done.created, done.updated, done.unchanged, done.rejected),
        (1_500, 1, 1, 1)
    );
    assert_eq!(rejected[0].number, 1_503);
    assert!(rejected[0].reason.starts_with("email: "), "{rejected:?}");
    let last = house.events(AggregateType::Contact, "c2").await;
    assert!(done.position.unwrap().sequence() >= last[1].sequence);
}
