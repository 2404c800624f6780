//! Any page of a list, after any additions, changes and deletions, against a sorted list.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use harness::{Answer, Organization};
use serde_json::{Value, json};

use super::exports::write_of;
use crate::system;

const VALUES: [&str; 3] = ["ACTIVE", "COMPLETED", "CANCELLED"];
/// Enough for several blocks of each list.
const MANY: usize = 2_000;

/// A kind of record that is listed in pages, and the field that the list is filtered by.
struct Kind {
    name: &'static str,
    field: &'static str,
    /// Fields that every record must have.
    rest: fn(&str) -> Value,
}

const ORDERS: Kind = Kind {
    name: "orders",
    field: "status",
    rest: |id| json!({"orderNumber": id, "amount": 1}),
};
const LEADS: Kind = Kind {
    name: "leads",
    field: "status",
    rest: |id| json!({"name": id}),
};
const CLIENTS: Kind = Kind {
    name: "clients",
    field: "city",
    rest: |id| json!({"name": id}),
};

/// A record's time and its value of that field, by id.
type Records = BTreeMap<String, (u32, &'static str)>;

/// Deterministic pseudorandom numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Creates a record: many share a time, and any may be anywhere in the list.
fn record(kind: &Kind, id: &str, dice: &mut Dice, records: &mut Records) -> Value {
    let moment = u32::try_from(dice.below(60)).unwrap();
    let value = VALUES[usize::try_from(dice.below(3)).unwrap()];
    records.insert(id.to_owned(), (moment, value));
    let mut record = (kind.rest)(id);
    record["id"] = json!(id);
    record[kind.field] = json!(value);
    record["createdAt"] = json!(format!("2026-03-01T00:00:{moment:02}Z"));
    record
}

/// Newest first, then by id.
fn sorted(records: &Records, value: &str) -> Vec<String> {
    let mut list: Vec<_> = records
        .iter()
        .filter(|(_, (_, its))| value.is_empty() || *its == value)
        .map(|(id, (moment, _))| (Reverse(*moment), id))
        .collect();
    list.sort_unstable();
    list.into_iter().map(|(_, id)| id.clone()).collect()
}

fn ids(answer: &Answer) -> Vec<String> {
    let list = answer.ok(200);
    let items = list["data"].as_array().unwrap().iter();
    items
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Compares every page by number, of all records and of those with one value.
async fn compare(org: &Organization<'_>, kind: &Kind, records: &Records, position: &str) {
    // With its own key, which is limited to a number of requests per minute.
    let client = org.client(&[&format!("read:{}", kind.name)]).await;
    for value in ["", VALUES[1]] {
        let (list, limit) = (sorted(records, value), 93);
        let filter = match value {
            "" => String::new(),
            value => format!("&{}={value}", kind.field),
        };
        for page in 1..=list.len() / limit + 2 {
            let path = format!("/api/v1/{}?limit={limit}&page={page}{filter}", kind.name);
            let answer = client.get_at(&path, position).await;
            let expected: Vec<_> = list.iter().skip((page - 1) * limit).take(limit).collect();
            assert_eq!(ids(&answer).iter().collect::<Vec<_>>(), expected, "{path}");
            assert_eq!(answer.ok(200)["total"], list.len(), "{path}");
        }
    }
}

async fn change(
    org: &Organization<'_>,
    kind: &Kind,
    dice: &mut Dice,
    records: &mut Records,
) -> String {
    for _ in 0..40 {
        let nth = usize::try_from(dice.below(records.len() as u64)).unwrap();
        let id = records.keys().nth(nth).unwrap().clone();
        records.remove(&id);
        let path = format!("/api/v1/records/{}/{id}", kind.name);
        assert_eq!(org.admin.delete(&path).await.status, 204);
    }
    let mut written = BTreeMap::new();
    for _ in 0..400 {
        let id = format!("o{}", dice.below(MANY as u64 + 200));
        written.insert(id.clone(), record(kind, &id, dice, records));
    }
    let written: Vec<_> = written.into_values().collect();
    write_of(kind.name, org, &written).await
}

async fn every_page_is_a_part_of_the_sorted_list(kind: Kind) {
    let org = system().await.organization().await;
    let (mut dice, mut records) = (Dice(16), Records::new());
    let written: Vec<_> = (0..MANY)
        .map(|nth| record(&kind, &format!("o{nth}"), &mut dice, &mut records))
        .collect();
    let position = write_of(kind.name, &org, &written).await;
    compare(&org, &kind, &records, &position).await;
    for _ in 0..2 {
        let position = change(&org, &kind, &mut dice, &mut records).await;
        compare(&org, &kind, &records, &position).await;
    }
}

#[tokio::test]
async fn every_page_of_orders_is_a_part_of_the_sorted_list_whatever_changes() {
    every_page_is_a_part_of_the_sorted_list(ORDERS).await;
}

#[tokio::test]
async fn every_page_of_leads_is_a_part_of_the_sorted_list_whatever_changes() {
    every_page_is_a_part_of_the_sorted_list(LEADS).await;
}

#[tokio::test]
async fn every_page_of_clients_is_a_part_of_the_sorted_list_whatever_changes() {
    every_page_is_a_part_of_the_sorted_list(CLIENTS).await;
}

#[tokio::test]
async fn a_walk_by_links_is_not_moved_by_what_comes_and_goes() {
    let org = system().await.organization().await;
    let (mut dice, mut orders) = (Dice(4), Records::new());
    let written: Vec<_> = (0..500)
        .map(|nth| record(&ORDERS, &format!("o{nth}"), &mut dice, &mut orders))
        .collect();
    let position = write_of("orders", &org, &written).await;
    let list = sorted(&orders, "");
    let (mut walked, mut path) = (Vec::new(), "/api/v1/orders?limit=50".to_owned());
    let mut round = 0;
    loop {
        let answer = org.admin.get_at(&path, &position).await;
        walked.extend(ids(&answer));
        let Some(next) = answer.next() else {
            break;
        };
        path = next;
        // A newer one is added, and the one after which the next page begins is deleted.
        round += 1;
        let newer = json!({"id": format!("n{round}"), "orderNumber": "1", "status": "ACTIVE",
            "amount": 1});
        org.admin
            .post("/api/v1/records/orders", &newer)
            .await
            .ok(201);
        let last = walked.last().unwrap();
        let gone = format!("/api/v1/records/orders/{last}");
        let gone = org.admin.delete(&gone).await.position();
        org.admin.get_at("/api/v1/orders", &gone).await;
    }
    assert_eq!(walked, list);
}

#[tokio::test]
async fn the_total_of_a_search_follows_every_change() {
    let org = system().await.organization().await;
    let (mut dice, mut orders) = (Dice(7), Records::new());
    let written: Vec<_> = (0..30)
        .map(|nth| record(&ORDERS, &format!("found-{nth}"), &mut dice, &mut orders))
        .collect();
    let mut position = write_of("orders", &org, &written).await;
    for left in (27..=30).rev() {
        for path in [
            "/api/v1/orders?q=found&limit=10",
            "/api/v1/orders?q=found&limit=10&page=2&sort=amount",
            "/api/v1/orders?q=found&page=9",
        ] {
            // Counted the first time, known the second time.
            for _ in 0..2 {
                let answer = org.admin.get_at(path, &position).await;
                assert_eq!(answer.ok(200)["total"], left, "{path}");
            }
        }
        let gone = format!("/api/v1/records/orders/found-{}", left - 1);
        position = org.admin.delete(&gone).await.position();
    }
}
