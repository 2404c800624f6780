//! What the operator's command line does, without HTTP.

use command_api::accounts::Passwords;
use command_api::organizations::{self, Joiner, NewInvite, NewOrganization, NewOwner};
use command_api::{CommandError, Origin, PeopleSettings, records, secrets, workflows};
use domain::account::Email;
use domain::record::{Columns, Kind};
use event_log::{Binding, VaultError};
use futures::stream;
use schemas::{AccountId, AggregateType, Context, Event, OrgId, StreamId};
use serde_json::json;

use crate::support::TestApi;

static OPERATOR: Origin = Origin {
    context: Context {
        correlation_id: None,
        causation_id: None,
        traceparent: None,
        hops: 0,
        cause: None,
        actor: None,
    },
    receipt: None,
};

fn new_email() -> Email {
    Email::parse(&format!("{}@example.org", uuid::Uuid::new_v4())).unwrap()
}

async fn owner_of(api: &TestApi, org: &OrgId) -> Option<AccountId> {
    let stream = StreamId::new(org, AggregateType::Organization, org.as_str());
    let events = api.commands.log().load(&stream).await.unwrap();
    events.iter().find_map(|recorded| match &recorded.event {
        Event::OrganizationMemberAdded(added) => Some(added.account_id),
        _ => None,
    })
}

async fn found(api: &TestApi, name: &str, email: Option<&Email>) -> NewOrganization {
    let people = PeopleSettings::default();
    let founded = organizations::create(&api.commands, &OPERATOR, name, email, &people);
    founded.await.unwrap().answer
}

/// The owner's password, or else their invite.
fn owner(founded: &NewOrganization) -> Result<&str, &NewInvite> {
    match founded.owner.as_ref().unwrap() {
        NewOwner::Password(password) => Ok(password),
        NewOwner::Invite(invite) => Err(invite),
    }
}

#[tokio::test]
async fn an_owner_gets_an_account_once_and_agrees_to_the_second_organization() {
    let (api, email) = (TestApi::open().await, new_email());
    let first = found(&api, "First", Some(&email)).await;
    let second = found(&api, "Second", Some(&email)).await;
    assert_eq!(owner(&first).unwrap().len(), 20);
    let invite = owner(&second).unwrap_err();
    let account = owner_of(&api, &first.org_id).await.unwrap();
    assert_eq!(owner_of(&api, &second.org_id).await, None);
    let joiner = Joiner::Account(account);
    let (passwords, code) = (Passwords::default(), &invite.code);
    let joined = organizations::accept(&api.commands, &OPERATOR, &passwords, code, joiner);
    assert_eq!(joined.await.unwrap().answer.org, second.org_id);
    assert_eq!(owner_of(&api, &second.org_id).await, Some(account));

    let stream = StreamId::of_account(account);
    let events = api.commands.log().load(&stream).await.unwrap();
    let Event::AccountRegistered(registered) = &events[0].event else {
        panic!("{events:?}");
    };
    let vault = api.commands.log().vault();
    let read = vault
        .unseal(&Binding::Email(account), &registered.email)
        .await
        .unwrap();
    assert_eq!(read, email.as_str());
    assert!(!registered.email.ciphertext().contains("example"));
}

#[tokio::test]
async fn founders_who_meet_on_one_address_open_one_account() {
    let (api, email) = (TestApi::open().await, new_email());
    let founding = (0..4).map(|_| found(&api, "Org", Some(&email)));
    let founded = futures::future::join_all(founding).await;
    let with_password = founded.iter().filter(|org| owner(org).is_ok());
    assert_eq!(with_password.count(), 1);
    for org in &founded {
        let owned = owner_of(&api, &org.org_id).await.is_some();
        assert_eq!(owned, owner(org).is_ok());
    }
}

#[tokio::test]
async fn what_was_sealed_for_an_invite_that_ended_is_unreadable() {
    let (api, email) = (TestApi::open().await, new_email());
    let org = found(&api, "Org", None).await.org_id;
    let people = PeopleSettings::default();
    let (commands, origin) = (&api.commands, &OPERATOR);
    for _ in 0..2 {
        let made = organizations::invite(commands, origin, &org, &email, None, &people);
        made.await.unwrap();
    }
    let removed = organizations::remove_address(commands, origin, &org, &email);
    removed.await.unwrap();
    let stream = StreamId::new(&org, AggregateType::Organization, org.as_str());
    let events = commands.log().load(&stream).await.unwrap();
    let invited = events.iter().filter_map(|recorded| match &recorded.event {
        Event::OrganizationMemberInvited(invited) => Some(invited),
        _ => None,
    });
    let invited: Vec<_> = invited.collect();
    assert_eq!(invited.len(), 2);
    for one in invited {
        let binding = Binding::Invited(one.account_id, one.invite_id.to_string());
        let read = commands.log().vault().unseal(&binding, &one.email).await;
        assert!(matches!(read, Err(VaultError::Forgotten)), "{read:?}");
    }
}

#[tokio::test]
async fn an_organization_needs_a_name_and_no_owner() {
    let api = TestApi::open().await;
    assert!(found(&api, "Org", None).await.owner.is_none());
    let people = PeopleSettings::default();
    let nameless = organizations::create(&api.commands, &OPERATOR, " ", None, &people).await;
    assert!(matches!(nameless, Err(CommandError::Refused(error)) if error.field == "name"));
}

#[tokio::test]
async fn a_secret_is_sealed() {
    let api = TestApi::open().await;
    let set = |name, value| secrets::set(&api.commands, &OPERATOR, &api.org, name, value, None);
    set("TOKEN", "first").await.unwrap();
    set("TOKEN", "second").await.unwrap();
    assert!(set("NO-NAME", "x").await.is_err());
    assert!(set("EMPTY", "").await.is_err());
    let events = api.events(AggregateType::Secret, "TOKEN").await;
    let Event::SecretSet(last) = &events[1].event else {
        panic!("{events:?}");
    };
    let binding = Binding::Secret(api.org.clone(), last.name.clone());
    let vault = api.commands.log().vault();
    assert_eq!(vault.unseal(&binding, &last.value).await.unwrap(), "second");
}

#[tokio::test]
async fn a_secret_keeps_its_hosts_until_others_are_named() {
    let api = TestApi::open().await;
    let set = async |hosts: Option<&[&str]>| {
        let hosts: Option<Vec<_>> =
            hosts.map(|hosts| hosts.iter().map(ToString::to_string).collect());
        let (commands, org) = (&api.commands, &api.org);
        secrets::set(commands, &OPERATOR, org, "TOKEN", "value", hosts.as_deref()).await
    };
    set(Some(&["CRM.example"])).await.unwrap();
    set(None).await.unwrap();
    set(Some(&[])).await.unwrap();
    let refused = set(Some(&["https://crm.example"])).await;
    assert!(matches!(refused, Err(CommandError::Refused(error)) if error.field == "hosts"));
    let events = api.events(AggregateType::Secret, "TOKEN").await;
    let hosts: Vec<_> = events
        .iter()
        .map(|recorded| match &recorded.event {
            Event::SecretSet(set) => set.hosts.join(","),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(hosts, ["crm.example", "crm.example", ""]);
}

#[tokio::test]
async fn a_workflow_takes_its_id_from_where_it_is_given_or_gets_a_new_one() {
    let api = TestApi::open().await;
    let put = |id: Option<&str>, document| {
        let id = id.map(Into::into);
        workflows::put(&api.commands, &OPERATOR, &api.org, id, document)
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
    let api = TestApi::open().await;
    let columns = Columns::new(Kind::Contacts, ["id", "firstName"]).unwrap();
    let row = |number: u64, id: &str, name: &str| records::Row {
        line: number + 1,
        end: records::FilePosition {
            rows: number,
            lines: number + 1,
            bytes: 20 * number,
        },
        draft: columns.draft([id, name]).map_err(records::Fault::from),
    };
    let mut rows: Vec<_> = (1..=1_500)
        .map(|nth| row(nth, &format!("c{nth}"), "A"))
        .collect();
    rows.push(row(1_501, "c1", "A"));
    rows.push(row(1_502, "c2", "B"));
    rows.push(row(1_503, "c3", ""));
    let import = records::Import {
        commands: api.commands.clone(),
        origin: OPERATOR.clone(),
        org: api.org.clone(),
        kind: Kind::Contacts,
        source: None,
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
    assert_eq!((rejected[0].number, rejected[0].line), (1_503, 1_504));
    assert_eq!(rejected[0].fault.field.as_deref(), Some("email"));
    assert_eq!(done.through.map(|place| place.rows), Some(1_503));
    let last = api.events(AggregateType::Contact, "c2").await;
    assert!(done.position.unwrap().sequence() >= last[1].sequence);
}
