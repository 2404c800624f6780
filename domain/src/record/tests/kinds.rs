//! All kinds, by example.

use serde_json::{Value, json};

use super::{Case, at, decided, read};
use crate::record::*;

/// A complete record of each kind, as JSON and as a row of a file, and a minimal one.
pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            kind: Kind::Companies,
            whole: json!({
                "id": "k1", "name": "Engines", "domain": "engines.example", "industry": "Steam",
                "phone": "+44 1", "email": "hello@engines.example", "address": "1 Dorset Street",
                "city": "London", "country": "UK", "employees": 12, "annualRevenue": -5_000_000,
                "owner": "cb", "createdAt": "2020-01-02T03:04:05Z"
            }),
            least: json!({"name": "Engines"}),
        },
        Case {
            kind: Kind::Deals,
            whole: json!({
                "id": "d1", "title": "A difference engine", "stage": "won", "amount": 1_750_000,
                "currency": "GBP", "probability": 62.5, "companyId": "k1",
                "companyName": "Engines", "contactId": "c1", "contactName": "Ada", "owner": "cb",
                "expectedCloseDate": "2026-02-28", "createdAt": "2020-01-02T03:04:05Z"
            }),
            least: json!({"title": "A difference engine"}),
        },
        Case {
            kind: Kind::Contacts,
            whole: json!({
                "id": "c1", "firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.org",
                "phone": "+44 1", "jobTitle": "Analyst", "companyId": "k1",
                "companyName": "Engines", "city": "London", "country": "UK", "owner": "cb",
                "createdAt": "2020-01-02T03:04:05Z"
            }),
            least: json!({"lastName": "Lovelace"}),
        },
        Case {
            kind: Kind::Orders,
            whole: json!({
                "id": "o1", "orderNumber": "2026-0001", "status": "PAYMENT_PENDING",
                "amount": -250, "plan": "yearly",
                "client": {"name": "Ada", "email": "ada@example.org"},
                "product": {"name": "Engine"}, "createdAt": "2020-01-02T03:04:05Z"
            }),
            least: json!({"orderNumber": "1", "status": "ACTIVE", "amount": 0}),
        },
        Case {
            kind: Kind::Leads,
            whole: json!({
                "id": "l1", "name": "Ada", "phone": "+44 1", "email": "ada@example.org",
                "service": "Analysis", "source": "web", "status": "NEW", "score": 80,
                "createdAt": "2020-01-02T03:04:05Z"
            }),
            least: json!({"name": "Ada"}),
        },
        Case {
            kind: Kind::Clients,
            whole: json!({
                "id": "u1", "name": "Ada", "email": "ada@example.org", "phone": "+44 1",
                "company": "Engines", "city": "London", "isActive": false,
                "createdAt": "2020-01-02T03:04:05Z"
            }),
            least: json!({"name": "Ada"}),
        },
    ]
}

/// The record's data as its event carries it.
fn data(kind: Kind, object: &Value) -> Value {
    let draft = read(kind, object).unwrap();
    let id = draft.id().cloned().unwrap_or_else(|| "x".into());
    decided(&create(id, draft, None, at(0)).unwrap())
}

#[test]
fn a_whole_record_of_every_kind_is_read() {
    for Case { kind, whole, .. } in cases() {
        assert_eq!(data(kind, &whole), whole);
        assert_eq!(Kind::parse(kind.name()), Some(kind));
    }
    assert_eq!(cases().len(), Kind::ALL.len());
    assert_eq!(Kind::parse("spaceships"), None);
}

#[test]
fn what_is_not_required_may_be_absent_or_null() {
    for Case { kind, least, .. } in cases() {
        let mut nulls = least.clone();
        for name in kind.field_names() {
            let name = name.split('.').next().unwrap();
            let fields = nulls.as_object_mut().unwrap();
            fields.entry(name).or_insert(Value::Null);
        }
        let written = data(kind, &least);
        assert_eq!(data(kind, &nulls), written, "{kind:?}");
        let fields = written.as_object().unwrap();
        for (name, value) in fields {
            let empty = match name.as_str() {
                "id" | "createdAt" => continue,
                _ if least.get(name).is_some() => continue,
                "isActive" => json!(true),
                "score" => json!(0),
                "client" => json!({"name": null, "email": null}),
                "product" => json!({"name": null}),
                _ => Value::Null,
            };
            assert_eq!(*value, empty, "{name} of {kind:?}");
        }
    }
}

#[test]
fn what_is_wrong_names_its_field_in_every_kind() {
    use Kind::{Clients, Companies, Deals, Leads, Orders};
    let too_far = (1_i64 << 53) + 1;
    for (kind, field, value) in [
        (Companies, "name", Value::Null),
        (Companies, "name", json!(" ")),
        (Companies, "name", json!(1)),
        (Companies, "employees", json!("12")),
        (Companies, "employees", json!(1.5)),
        (Companies, "annualRevenue", json!(too_far)),
        (Companies, "annualRevenue", json!(-too_far)),
        (Companies, "annualRevenue", json!(u64::MAX)),
        (Companies, "annual_revenue", json!(1)),
        (Deals, "title", Value::Null),
        (Deals, "title", json!("")),
        (Deals, "probability", json!(100.5)),
        (Deals, "probability", json!(-1)),
        (Deals, "probability", json!("half")),
        (Deals, "amount", json!(true)),
        (Deals, "expectedCloseDate", json!("2026-02-29")),
        (Deals, "expectedCloseDate", json!("2026-2-1")),
        (Deals, "expectedCloseDate", json!("0000-01-01")),
        (Deals, "expectedCloseDate", json!("2026-02-28T25:00:00Z")),
        (Deals, "expectedCloseDate", json!("2026-02-28 soon")),
        (Deals, "expectedCloseDate", json!(20_260_228)),
        (Orders, "orderNumber", Value::Null),
        (Orders, "orderNumber", json!(7)),
        (Orders, "status", Value::Null),
        (Orders, "status", json!("active")),
        (Orders, "status", json!(1)),
        (Orders, "amount", Value::Null),
        (Orders, "amount", json!("7")),
        (Orders, "client", json!("Ada")),
        (Orders, "product", json!([])),
        (Orders, "client.name", json!("Ada")),
        (Leads, "name", Value::Null),
        (Leads, "score", json!(0.5)),
        (Leads, "status", json!(["NEW"])),
        (Clients, "name", Value::Null),
        (Clients, "isActive", json!("true")),
        (Clients, "isActive", json!(1)),
        (Clients, "createdAt", json!("now")),
    ] {
        let case = cases().into_iter().find(|case| case.kind == kind).unwrap();
        let mut object = case.least;
        object[field] = value;
        let error = read(kind, &object).unwrap_err();
        assert_eq!(error.field, field, "{object} gave {error}");
    }
}

#[test]
fn what_is_wrong_within_an_object_is_named_with_it() {
    for (client, field) in [
        (json!({"name": 1}), "client.name"),
        (json!({"phone": "1"}), "client.phone"),
        (json!({"name.first": "Ada"}), "client.name.first"),
    ] {
        let object = json!({"orderNumber": "1", "status": "ACTIVE", "amount": 1, "client": client});
        assert_eq!(read(Kind::Orders, &object).unwrap_err().field, field);
    }
}

#[test]
fn the_day_of_a_time_is_the_one_that_it_names() {
    for given in [
        "2026-02-28",
        "2026-02-28T23:30:00-05:00",
        "2026-02-28T00:30:00+09:00",
    ] {
        let deal = data(
            Kind::Deals,
            &json!({"title": "x", "expectedCloseDate": given}),
        );
        assert_eq!(deal["expectedCloseDate"], "2026-02-28");
    }
}

#[test]
fn whole_numbers_go_as_far_as_everybody_can_read_them() {
    for number in [1_i64 << 53, -(1 << 53), 0] {
        let company = data(
            Kind::Companies,
            &json!({"name": "x", "annualRevenue": number}),
        );
        assert_eq!(company["annualRevenue"], number);
    }
}

#[test]
fn writing_back_what_was_read_changes_nothing() {
    for Case { kind, whole, least } in cases() {
        for object in [whole, least] {
            let draft = read(kind, &object).unwrap();
            let id = draft.id().cloned().unwrap_or_else(|| "x".into());
            let (change, event) = put(id.clone(), draft, None, at(0));
            let event = event.unwrap();
            assert_eq!(change, Change::Created);
            let mut back = decided(&event);
            back["updatedAt"] = json!("2026-11-21T10:00:00Z");
            let again = put(id.clone(), read(kind, &back).unwrap(), Some(&event), at(5));
            assert_eq!(again, (Change::Unchanged, None));
            assert!(kind.exists(Some(&event)));
            let deleted = delete(kind, id, Some(&event)).unwrap();
            assert!(!kind.exists(Some(&deleted)));
        }
    }
}

#[test]
fn a_row_of_words_as_spreadsheets_write_them_is_read() {
    let columns = Columns::new(Kind::Clients, ["name", "isActive"]).unwrap();
    for (cell, is_active) in [
        ("TRUE", true),
        ("False", false),
        (" true ", true),
        ("", true),
    ] {
        let client = columns.draft(["Ada", cell]).unwrap();
        let event = create("u".into(), client, None, at(0)).unwrap();
        assert_eq!(decided(&event)["isActive"], is_active);
    }
    assert_eq!(columns.draft(["Ada", "yes"]).unwrap_err().field, "isActive");
    let columns = Columns::new(Kind::Orders, ["orderNumber", "amount", "status"]).unwrap();
    for (row, field) in [
        (["1", "1,000", "ACTIVE"], "amount"),
        (["1", "", "ACTIVE"], "amount"),
        (["1", "1", ""], "status"),
        (["", "1", "ACTIVE"], "orderNumber"),
    ] {
        assert_eq!(columns.draft(row).unwrap_err().field, field);
    }
    let unknown = Columns::new(Kind::Orders, ["client"]).unwrap_err();
    assert_eq!(
        unknown.field, "client",
        "its fields stand in columns of their own"
    );
}
