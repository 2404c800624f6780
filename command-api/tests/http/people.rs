//! An organization's people: what ends with a membership, and with an address that is forgotten.

use command_api::accounts::Passwords;
use command_api::organizations::{self, Joiner, NewInvite};
use command_api::{CommandError, Origin, PeopleSettings};
use domain::account::{Email, Registration};
use domain::organization::CannotJoin;
use event_log::{Binding, VaultError};
use schemas::{AccountId, AggregateType, Event, OrgId, StreamId};
use serde_json::json;
use uuid::Uuid;

use crate::support::TestApi;

fn new_email() -> Email {
    Email::parse(&format!("{}@example.org", Uuid::new_v4())).unwrap()
}

async fn found(api: &TestApi) -> OrgId {
    let (origin, people) = (Origin::operator(), PeopleSettings::default());
    let founded = organizations::create(&api.commands, &origin, "Org", None, &people);
    founded.await.unwrap().answer.org_id
}

async fn invite(api: &TestApi, org: &OrgId, email: &Email, by: Option<AccountId>) -> NewInvite {
    let (origin, people) = (Origin::operator(), PeopleSettings::default());
    let made = organizations::invite(&api.commands, &origin, org, email, by, &people);
    made.await.unwrap().answer
}

type Accepted = Result<AccountId, CommandError<CannotJoin>>;

async fn accept(api: &TestApi, code: &str, joiner: Joiner<'_>) -> Accepted {
    let (origin, passwords) = (Origin::operator(), Passwords::default());
    let joined = organizations::accept(&api.commands, &origin, &passwords, code, joiner);
    Ok(joined.await?.answer.account)
}

/// An owner who was invited by the operator, with a new account.
async fn new_owner(api: &TestApi, org: &OrgId) -> AccountId {
    let email = new_email();
    let code = invite(api, org, &email, None).await.code;
    let wanted = json!({"name": "Ada", "email": email.as_str(), "password": "long enough"});
    let registration = Registration::parse(wanted).unwrap();
    let joiner = Joiner::New(&registration);
    accept(api, &code, joiner).await.unwrap()
}

/// Whether the address of each invite that an organization ever made can be read, in their order.
async fn readable(api: &TestApi, org: &OrgId) -> Vec<bool> {
    let stream = StreamId::new(org, AggregateType::Organization, org.as_str());
    let events = api.commands.log().load(&stream).await.unwrap();
    let vault = api.commands.log().vault();
    let mut readable = Vec::new();
    for recorded in events {
        if let Event::OrganizationMemberInvited(invited) = recorded.event {
            let binding = Binding::Invited(invited.account_id, invited.invite_id.to_string());
            let read = vault.unseal(&binding, &invited.email).await;
            assert!(matches!(read, Ok(_) | Err(VaultError::Forgotten)));
            readable.push(read.is_ok());
        }
    }
    readable
}

#[tokio::test]
async fn a_removed_owner_does_not_come_back_by_a_link_to_another_address_of_theirs() {
    let api = TestApi::open().await;
    let (org, elsewhere) = (found(&api).await, found(&api).await);
    let ada = new_owner(&api, &org).await;
    let bob = new_owner(&api, &org).await;
    // Ada's other account is known elsewhere already.
    let other_email = new_email();
    let code = invite(&api, &elsewhere, &other_email, None).await.code;
    let wanted = json!({"name": "A", "email": other_email.as_str(), "password": "long enough"});
    let registration = Registration::parse(wanted).unwrap();
    let joined = accept(&api, &code, Joiner::New(&registration)).await;
    let other = joined.unwrap();

    let to_other = invite(&api, &org, &other_email, Some(ada)).await.code;
    let to_nobody = invite(&api, &org, &new_email(), Some(ada)).await.code;
    let of_bob = invite(&api, &org, &new_email(), Some(bob)).await.code;
    assert_eq!(readable(&api, &org).await[2..], [true, true, true]);
    let origin = Origin::operator();
    let removed = organizations::remove(&api.commands, &origin, &org, ada, Some(bob));
    removed.await.unwrap();

    for code in [&to_other, &to_nobody] {
        let refused = accept(&api, code, Joiner::Account(other)).await;
        let unknown = matches!(refused, Err(CommandError::Refused(CannotJoin::Unknown)));
        assert!(unknown, "{refused:?}");
    }
    let looked = organizations::look(&api.commands, &of_bob).await;
    assert!(looked.is_ok(), "{looked:?}");
    // The other account can be read as before; what was kept for nobody's account is gone.
    assert_eq!(readable(&api, &org).await[2..], [true, false, true]);
}

#[tokio::test]
async fn an_address_is_forgotten_in_every_organization_that_invited_it() {
    let (api, email) = (TestApi::open().await, new_email());
    let (often, once) = (found(&api).await, found(&api).await);
    let mut codes = Vec::new();
    for org in [&often, &often, &once, &often] {
        codes.push(invite(&api, org, &email, None).await.code);
    }
    let unaffected = invite(&api, &often, &new_email(), None).await.code;
    let origin = Origin::operator();
    for _ in 0..2 {
        let forgotten = organizations::forget_address(&api.commands, &origin, &email);
        assert_eq!(forgotten.await.unwrap(), 4);
        for code in &codes {
            let looked = organizations::look(&api.commands, code).await;
            let unknown = matches!(looked, Err(CommandError::Refused(CannotJoin::Unknown)));
            assert!(unknown, "{looked:?}");
        }
    }
    assert_eq!(readable(&api, &often).await, [false, false, false, true]);
    assert_eq!(readable(&api, &once).await, [false]);
    let looked = organizations::look(&api.commands, &unaffected).await;
    assert!(looked.is_ok(), "{looked:?}");
}
