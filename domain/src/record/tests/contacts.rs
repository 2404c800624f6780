//! Contacts, and what all kinds have in common.

use std::borrow::Borrow;

use proptest::prelude::*;
use schemas::record::Contact;
use schemas::{Event, RecordId};
use serde_json::{Value, json};

use super::at;
use crate::FieldError;
use crate::record::*;

fn read(object: impl Borrow<Value>) -> Result<Draft, FieldError> {
    super::read(Kind::Contacts, object.borrow())
}

fn id() -> RecordId {
    RecordId::from("c1")
}

fn ada() -> Draft {
    read(json!({"firstName": "Ada", "email": "ada@example.org"})).unwrap()
}

fn contact(event: &Event) -> &Contact {
    match event {
        Event::ContactCreated(contact) | Event::ContactUpdated(contact) => contact,
        other => panic!("no contact: {other:?}"),
    }
}

#[test]
fn a_whole_contact_is_read() {
    let draft = read(json!({
        "id": "c1", "firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.org",
        "phone": "+44 1", "jobTitle": "Analyst", "companyId": "k1", "companyName": "Engines",
        "city": "London", "country": "UK", "owner": "cb", "createdAt": "2020-01-02T03:04:05+01:00",
        "updatedAt": "2020-01-02T03:04:05Z"
    }));
    let event = create(id(), draft.unwrap(), None, at(0)).unwrap();
    insta::assert_json_snapshot!(contact(&event), @r#"
    {
      "id": "c1",
      "firstName": "Ada",
      "lastName": "Lovelace",
      "email": "ada@example.org",
      "phone": "+44 1",
      "jobTitle": "Analyst",
      "companyId": "k1",
      "companyName": "Engines",
      "city": "London",
      "country": "UK",
      "owner": "cb",
      "createdAt": "2020-01-02T02:04:05Z"
    }
    "#);
}

#[test]
fn what_is_wrong_is_named_by_its_field() {
    let long = "x".repeat(1_001);
    let long_id = "x".repeat(129);
    for (object, field) in [
        (json!({}), "email"),
        (json!({"phone": "1"}), "email"),
        (
            json!({"firstName": "", "lastName": null, "email": " "}),
            "email",
        ),
        (json!({"firstName": 5}), "firstName"),
        (json!({"firstName": ["Ada"]}), "firstName"),
        (json!({"firstName": "A\u{0}da"}), "firstName"),
        (json!({"firstName": "Ada", "city": long}), "city"),
        (
            json!({"firstName": "Ada", "first_name": "Ada"}),
            "first_name",
        ),
        (json!({"firstName": "Ada", "id": 7}), "id"),
        (json!({"firstName": "Ada", "id": ""}), "id"),
        (json!({"firstName": "Ada", "id": "a\nb"}), "id"),
        (json!({"firstName": "Ada", "id": long_id}), "id"),
        (
            json!({"firstName": "Ada", "createdAt": "yesterday"}),
            "createdAt",
        ),
        (
            json!({"firstName": "Ada", "createdAt": 1_700_000_000}),
            "createdAt",
        ),
        (
            json!({"firstName": "Ada", "createdAt": "2026-13-01T00:00:00Z"}),
            "createdAt",
        ),
        (
            json!({"firstName": "Ada", "createdAt": "0000-01-01T00:00:00+01:00"}),
            "createdAt",
        ),
        (json!({"firstName": "Ada", "updatedAt": "x"}), "updatedAt"),
    ] {
        let error = read(object.clone()).unwrap_err();
        assert_eq!(error.field, field, "{object} gave {error}");
    }
}

#[test]
fn null_is_absent_and_an_id_may_be_as_long_as_it_says() {
    let draft = read(json!({"lastName": "L", "city": null, "id": "ä".repeat(128)})).unwrap();
    assert_eq!(draft.id().unwrap().as_str(), "ä".repeat(128));
}

#[test]
fn a_row_reads_as_the_object_does() {
    let headers = ["\u{feff}email", " firstName", "city", "createdAt", "id"];
    let columns = Columns::new(Kind::Contacts, headers).unwrap();
    let row = ["ada@example.org", "Ada", "", "", ""];
    assert_eq!(columns.draft(row).unwrap(), ada());
    assert_eq!(
        columns.draft(["", "", "Paris", "", ""]).unwrap_err().field,
        "email"
    );
}

#[test]
fn a_header_row_must_name_fields_once() {
    for (headers, field) in [
        (vec!["email", "shoe size"], "shoe size"),
        (vec!["email", "email"], "email"),
        (vec!["email", ""], ""),
    ] {
        assert_eq!(
            Columns::new(Kind::Contacts, headers).unwrap_err().field,
            field
        );
    }
}

#[test]
fn an_id_within_must_be_that_of_the_path() {
    let draft = || read(json!({"id": "c1", "firstName": "Ada"})).unwrap();
    assert!(draft().addressed(RecordId::from("c1")).is_ok());
    assert_eq!(
        draft().addressed(RecordId::from("c2")).unwrap_err().field,
        "id"
    );
    assert_eq!(
        ada()
            .addressed(RecordId::from("c2"))
            .unwrap()
            .id()
            .unwrap()
            .as_str(),
        "c2"
    );
}

#[test]
fn creating_what_exists_is_refused_and_what_was_deleted_is_not() {
    let created = create(id(), ada(), None, at(0)).unwrap();
    assert_eq!(create(id(), ada(), Some(&created), at(1)), Err(Exists));
    let deleted = delete(Kind::Contacts, id(), Some(&created)).unwrap();
    let again = create(id(), ada(), Some(&deleted), at(2)).unwrap();
    assert!(matches!(&again, Event::ContactCreated(contact) if contact.created_at == at(2)));
}

#[test]
fn replacing_keeps_the_creation_time_unless_another_is_given() {
    let (_, first) = put(id(), ada(), None, at(0));
    let first = first.unwrap();
    let other = read(json!({"firstName": "Grace"})).unwrap();
    let (change, second) = put(id(), other, Some(&first), at(5));
    let second = second.unwrap();
    assert_eq!(
        (change, contact(&second).created_at),
        (Change::Updated, at(0))
    );
    assert_eq!(
        contact(&second).email,
        None,
        "replacing leaves nothing behind"
    );

    let told = json!({"firstName": "Grace", "createdAt": "2020-01-01T00:00:00Z"});
    let (change, third) = put(id(), read(told).unwrap(), Some(&second), at(6));
    assert_eq!(change, Change::Updated);
    assert_eq!(
        contact(&third.unwrap()).created_at.to_rfc3339(),
        "2020-01-01T00:00:00+00:00"
    );
}

#[test]
fn deleting_what_is_not_there_leads_to_nothing() {
    assert_eq!(delete(Kind::Contacts, id(), None), None);
    let created = create(id(), ada(), None, at(0)).unwrap();
    let deleted = delete(Kind::Contacts, id(), Some(&created));
    assert!(matches!(deleted, Some(Event::ContactDeleted(_))));
    assert!(deleted.as_ref().is_some_and(is_deletion) && !is_deletion(&created));
    assert_eq!(delete(Kind::Contacts, id(), deleted.as_ref()), None);
}

/// A command on one record.
#[derive(Clone, Debug)]
enum Asked {
    Create(String),
    Put(String),
    Delete,
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        "[ab]".prop_map(Asked::Create),
        "[ab]".prop_map(Asked::Put),
        Just(Asked::Delete),
    ]
}

proptest! {
    /// The events of any history agree with a plain variable that is set and cleared.
    #[test]
    fn decisions_agree_with_a_variable(history in proptest::collection::vec(asked(), 0..20)) {
        let (mut last, mut model): (Option<Event>, Option<String>) = (None, None);
        for asked in history {
            let draft = |name: &str| read(json!({"firstName": name})).unwrap();
            let event = match &asked {
                Asked::Create(name) => {
                    let created = create(id(), draft(name), last.as_ref(), at(0));
                    prop_assert_eq!(created.is_err(), model.is_some());
                    if created.is_ok() { model = Some(name.clone()); }
                    created.ok()
                }
                Asked::Put(name) => {
                    let (change, event) = put(id(), draft(name), last.as_ref(), at(0));
                    let expected = match &model {
                        None => Change::Created,
                        Some(old) if old == name => Change::Unchanged,
                        Some(_) => Change::Updated,
                    };
                    prop_assert_eq!(change, expected);
                    model = Some(name.clone());
                    event
                }
                Asked::Delete => {
                    let event = delete(Kind::Contacts, id(), last.as_ref());
                    prop_assert_eq!(event.is_some(), model.is_some());
                    model = None;
                    event
                }
            };
            last = event.or(last);
            prop_assert_eq!(Kind::Contacts.exists(last.as_ref()), model.is_some());
        }
    }

    /// Any typed text is accepted or refused, never a panic; accepted text is kept.
    #[test]
    fn any_text_is_kept_as_it_is(text in "\\PC{1,40}") {
        let event = create(id(), read(json!({"email": "a@b", "city": text})).unwrap(), None, at(0));
        let event = event.unwrap();
        prop_assert_eq!(contact(&event).city.as_deref(), Some(text.as_str()));
    }
}
