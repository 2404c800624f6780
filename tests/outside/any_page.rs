//! Any page of a list, whatever has come, changed and gone, against the list sorted beside it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use harness::{Answer, Organization};
use serde_json::{Value, json};

use super::exports::write_of;
use crate::system;

const STATUSES: [&str; 3] = ["ACTIVE", "COMPLETED", "CANCELLED"];
/// Enough for several blocks of each list.
const ORDERS: usize = 2_000;

/// An order's moment and status, by its id.
type Orders = BTreeMap<String, (u32, &'static str)>;

/// Numbers that look random and are the same each time.
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

/// Writes an order: many share a moment, and any may be anywhere in the list.
fn order(id: &str, dice: &mut Dice, orders: &mut Orders) -> Value {
    let moment = u32::try_from(dice.below(60)).unwrap();
    let status = STATUSES[usize::try_from(dice.below(3)).unwrap()];
    orders.insert(id.to_owned(), (moment, status));
    json!({"id": id, "orderNumber": id, "status": status, "amount": 1,
        "createdAt": format!("2026-03-01T00:00:{moment:02}Z")})
}

/// Newest first, then by id.
fn sorted(orders: &Orders, status: &str) -> Vec<String> {
    let mut list: Vec<_> = orders
        .iter()
        .filter(|(_, (_, its))| status.is_empty() || *its == status)
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

/// Every page by its number, of all orders and of one status.
async fn compare(org: &Organization<'_>, orders: &Orders, position: &str) {
    // With a key of its own, which has so many requests a minute.
    let client = org.client(&["read:orders"]).await;
    for status in ["", STATUSES[1]] {
        let (list, limit) = (sorted(orders, status), 93);
        let filter = match status {
            "" => String::new(),
            status => format!("&status={status}"),
        };
        for page in 1..=list.len() / limit + 2 {
            let path = format!("/api/v1/orders?limit={limit}&page={page}{filter}");
            let answer = client.get_at(&path, position).await;
            let expected: Vec<_> = list.iter().skip((page - 1) * limit).take(limit).collect();
            assert_eq!(ids(&answer).iter().collect::<Vec<_>>(), expected, "{path}");
            assert_eq!(answer.ok(200)["total"], list.len(), "{path}");
        }
    }
}

async fn change(org: &Organization<'_>, dice: &mut Dice, orders: &mut Orders) -> String {
    for _ in 0..40 {
        let nth = usize::try_from(dice.below(orders.len() as u64)).unwrap();
        let id = orders.keys().nth(nth).unwrap().clone();
        orders.remove(&id);
        let path = format!("/api/v1/records/orders/{id}");
        assert_eq!(org.admin.delete(&path).await.status, 204);
    }
    let mut written = BTreeMap::new();
    for _ in 0..400 {
        let id = format!("o{}", dice.below(ORDERS as u64 + 200));
        written.insert(id.clone(), order(&id, dice, orders));
    }
    let written: Vec<_> = written.into_values().collect();
    write_of("orders", org, &written).await
}

#[tokio::test]
async fn every_page_is_a_part_of_the_sorted_list_whatever_changes() {
    let org = system().await.organization().await;
    let (mut dice, mut orders) = (Dice(16), Orders::new());
    let written: Vec<_> = (0..ORDERS)
        .map(|nth| order(&format!("o{nth}"), &mut dice, &mut orders))
        .collect();
    let position = write_of("orders", &org, &written).await;
    compare(&org, &orders, &position).await;
    for _ in 0..2 {
        let position = change(&org, &mut dice, &mut orders).await;
        compare(&org, &orders, &position).await;
    }
}

#[tokio::test]
async fn a_walk_by_links_is_not_moved_by_what_comes_and_goes() {
    let org = system().await.organization().await;
    let (mut dice, mut orders) = (Dice(4), Orders::new());
    let written: Vec<_> = (0..500)
        .map(|nth| order(&format!("o{nth}"), &mut dice, &mut orders))
        .collect();
    let position = write_of("orders", &org, &written).await;
    let list = sorted(&orders, "");
    let (mut walked, mut path) = (Vec::new(), "/api/v1/orders?limit=50".to_owned());
    let mut round = 0;
    loop {
        let answer = org.admin.get_at(&path, &position).await;
        walked.extend(ids(&answer));
        let Some(link) = answer.header("link") else {
            break;
        };
        path = link.split(['<', '>']).nth(1).unwrap().to_owned();
        // A newer one comes, and the one that the next page begins behind goes.
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
    let (mut dice, mut orders) = (Dice(7), Orders::new());
    let written: Vec<_> = (0..30)
        .map(|nth| order(&format!("found-{nth}"), &mut dice, &mut orders))
        .collect();
    let mut position = write_of("orders", &org, &written).await;
    for left in (27..=30).rev() {
        for path in [
            "/api/v1/orders?q=found&limit=10",
            "/api/v1/orders?q=found&limit=10&page=2&sort=amount",
            "/api/v1/orders?q=found&page=9",
        ] {
            // Counted, and known from before.
            for _ in 0..2 {
                let answer = org.admin.get_at(path, &position).await;
                assert_eq!(answer.ok(200)["total"], left, "{path}");
            }
        }
        let gone = format!("/api/v1/records/orders/found-{}", left - 1);
        position = org.admin.delete(&gone).await.position();
    }
}
