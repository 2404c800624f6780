//! Customers on the pages: lists that are searched and sorted; one record with its history;
//! imports.

use harness::{Answer, Client, System};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::{Value, json};

use super::dashboard::Owner;
use super::ndjson;
use crate::system;

/// A member of an organization's staff, and a program of the same organization.
pub(super) struct Shop {
    owner: Owner,
    pub(super) admin: Client,
}

impl Shop {
    pub(super) async fn open(system: &System) -> Self {
        let owner = Owner::sign_in(system).await;
        let key = owner
            .key(&json!({"name": "Till & Co", "scopes": ["admin"]}))
            .await;
        let admin = system.client().with_key(key["key"].as_str().unwrap());
        harness::eventually("the key to be known", async || {
            (admin.get("/api/v1/keys").await.status == 200).then_some(())
        })
        .await;
        Self { owner, admin }
    }

    /// Writes records; returns the position at which all are visible.
    pub(super) async fn write(
        &self,
        kind: &str,
        records: impl IntoIterator<Item = Value>,
    ) -> String {
        let path = format!("/api/v1/records/{kind}");
        let request = self.admin.request(Method::POST, &path);
        let request = request.header(CONTENT_TYPE, "application/x-ndjson");
        let answer = Answer::to(request.body(ndjson(records))).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(!answer.text().contains("error"), "{}", answer.text());
        answer.position()
    }

    pub(super) async fn read(&self, path: &str, position: &str) -> Answer {
        let request = self.admin.request(Method::GET, path);
        Answer::to(request.header("Waypost-Min-Position", position)).await
    }

    async fn page(&self, path: &str, position: &str) -> String {
        let between = if path.contains('?') { '&' } else { '?' };
        let page = self
            .owner
            .page(&format!("{path}{between}position={position}"))
            .await;
        assert_eq!(page.status, 200, "{}", page.text());
        page.text().replace("&#x2f;", "/")
    }
}

#[tokio::test]
async fn every_kind_has_a_list_that_says_what_to_do_while_it_is_empty() {
    let shop = Shop::open(system().await).await;
    for kind in [
        "contacts",
        "companies",
        "deals",
        "orders",
        "leads",
        "clients",
    ] {
        let page = shop.owner.page(&format!("/dashboard/{kind}")).await.text();
        let page = page.replace("&#x2f;", "/");
        for link in [
            format!("/dashboard/import/{kind}"),
            format!("/dashboard/new/{kind}"),
        ] {
            assert!(page.contains(&format!("href=\"{link}\"")), "{kind}");
            assert_eq!(shop.owner.page(&link).await.status, 200);
        }
        assert!(page.contains("class=\"empty\""), "{kind}");
        assert_eq!(
            shop.owner
                .page(&format!("/dashboard/{kind}/none"))
                .await
                .status,
            404
        );
    }
}

#[tokio::test]
async fn a_list_is_searched_filtered_sorted_and_paged_without_a_script() {
    let shop = Shop::open(system().await).await;
    let many = (1..=51).map(|n| {
        json!({"id": format!("l{n:02}"), "name": format!("<i>Lead {n:02}</i>"),
               "status": if n == 7 { "won" } else { "new" },
               "createdAt": format!("2026-01-01T00:00:{n:02}Z")})
    });
    let position = shop.write("leads", many).await;
    let first = shop.page("/dashboard/leads", &position).await;
    assert!(
        first.contains("51 leads") && first.contains("Lead 51"),
        "{first}"
    );
    assert!(!first.contains("<i>Lead") && !first.contains("Lead 01"));
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    let second = shop.page(&next, &position).await;
    assert!(
        second.contains("Lead 01") && second.contains("First page"),
        "{second}"
    );
    assert!(first.contains("<option value=\"won\">won"), "{first}");
    let won = shop.page("/dashboard/leads?status=won", &position).await;
    assert!(
        won.contains("1 lead found") && won.contains("Lead 07"),
        "{won}"
    );
    let found = shop
        .page("/dashboard/leads?q=lead+3&sort=name", &position)
        .await;
    assert!(found.contains("10 leads found") && found.contains("aria-sort=\"ascending\""));
    assert!(found.find("Lead 30") < found.find("Lead 39"));
    let none = shop.page("/dashboard/leads?q=nobody", &position).await;
    assert!(none.contains("0 leads found") && none.contains("class=\"empty\""));
    assert_eq!(shop.owner.page("/dashboard/leads?sort=x").await.status, 400);
}

#[tokio::test]
async fn a_record_is_shown_with_what_happened_to_it_and_who_did_it() {
    let shop = Shop::open(system().await).await;
    let company = json!({"name": "Acme <Inc>", "city": "Paris"});
    let path = "/dashboard/api/v1/records/companies/a%2Fb";
    shop.owner
        .send(Method::PUT, path, Some(&company))
        .await
        .ok(201);
    let company = json!({"name": "Acme <Inc>", "city": "Lyon"});
    let written = shop
        .admin
        .put("/api/v1/records/companies/a%2Fb", &company)
        .await;
    written.ok(200);
    let page = shop
        .page("/dashboard/companies/a%2Fb", &written.position())
        .await;
    assert!(
        page.contains("<h1 class=\"long\">Acme &lt;Inc&gt;</h1>"),
        "{page}"
    );
    let (created, changed) = (page.find("company.created"), page.find("company.updated"));
    assert!(
        changed.is_some() && changed < created,
        "newest first: {page}"
    );
    for word in ["Paris</del>", "Lyon</ins>", "API key Till &amp; Co"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let gone = shop.owner.send(Method::DELETE, path, None).await;
    gone.ok(204);
    let page = shop
        .page("/dashboard/companies/a%2Fb", &gone.position())
        .await;
    assert!(
        page.contains("was deleted") && page.contains("company.deleted"),
        "{page}"
    );
    let other = Shop::open(system().await).await;
    let address = format!("/dashboard/companies/a%2Fb?position={}", gone.position());
    assert_eq!(other.owner.page(&address).await.status, 404);
}

#[tokio::test]
async fn a_long_history_is_shown_in_parts() {
    let shop = Shop::open(system().await).await;
    let versions =
        (1..=45).map(|n| json!({"id": "c", "name": "C", "city": format!("City {n:02}")}));
    let position = shop.write("clients", versions).await;
    let mut address = "/dashboard/clients/c".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = shop.page(&address, &position).await;
        let changes = page.matches("<li>\n<h3>").count();
        seen.push(changes);
        let Some(older) = page.split("?before=").nth(1) else {
            break;
        };
        let before = older.split(['#', '"']).next().unwrap();
        address = format!("/dashboard/clients/c?before={before}");
    }
    assert_eq!(seen, [20, 20, 5]);
    let wrong = shop.owner.page("/dashboard/clients/c?before=x").await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn what_the_import_page_sends_is_written_once_and_answered_line_by_line() {
    let shop = Shop::open(system().await).await;
    let lines = ndjson([
        json!({"name": "One"}),
        json!({"name": ""}),
        json!({"name": "Two"}),
    ]);
    let mut positions = Vec::new();
    for _ in 0..2 {
        let path = "/dashboard/api/v1/records/clients";
        let request = shop.owner.client.request(Method::POST, path);
        let request = request
            .header(COOKIE, &shop.owner.cookie)
            .header(ORIGIN, shop.owner.client.base())
            .header(CONTENT_TYPE, "application/x-ndjson")
            .header("Idempotency-Key", "import-1");
        let answer = Answer::to(request.body(lines.clone())).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let answered: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(answered.len(), 3);
        assert!(
            answered[1]["error"].as_str().unwrap().starts_with("name"),
            "{text}"
        );
        positions.push(answer.position());
    }
    let page = shop.page("/dashboard/clients", &positions[1]).await;
    assert!(page.contains("2 clients"), "{page}");
}

#[tokio::test]
async fn amounts_have_the_decimals_of_their_currency() {
    let shop = Shop::open(system().await).await;
    let deals = [("d1", "EUR"), ("d2", "JPY"), ("d3", "KWD")].map(|(id, currency)| {
        json!({"id": id, "title": format!("In {currency}"), "amount": 1_234_567, "currency": currency})
    });
    let position = shop.write("deals", deals).await;
    let list = shop.page("/dashboard/deals", &position).await;
    for amount in ["12,345.67", "1,234,567<", "1,234.567"] {
        assert!(list.contains(amount), "{amount}: {list}");
    }
    let one = shop.page("/dashboard/deals/d2", &position).await;
    assert!(one.contains("value=\"1234567\""), "{one}");
    assert!(one.contains("JPY:0"), "{one}");
    let one = shop.page("/dashboard/deals/d3", &position).await;
    assert!(one.contains("value=\"1234.567\""), "{one}");
}
