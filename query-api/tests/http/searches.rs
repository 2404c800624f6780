//! A search finds exactly the records that contain its text, whichever part of it is looked up.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use url::form_urlencoded;

use crate::support::House;

const ORDERS: usize = 2_000;
/// The number of searched texts.
const TEXTS: u32 = 60;

/// The number, the client and the address of an order, with both common and rare parts.
fn order(nth: usize) -> (String, String, String) {
    let client = match nth % 50 {
        0 => format!("50%_{} Ömer & Söhne", nth / 50),
        _ => format!("Client {}", nth % 97),
    };
    (
        format!("O-{nth}"),
        client,
        format!("Person{nth}@example.com"),
    )
}

async fn house_of_orders() -> House {
    let house = House::open().await;
    let (mut numbers, mut clients, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
    for (number, client, address) in (0..ORDERS).map(order) {
        numbers.push(number);
        clients.push(client);
        addresses.push(address);
    }
    let insert = "INSERT INTO orders (org_id, id, order_number, client_name, client_email, status,
                                      amount, created_at, updated_at)
                  SELECT $1, number, number, client, address, 'ACTIVE', 1, now(), now()
                  FROM UNNEST($2::text[], $3::text[], $4::text[]) AS new (number, client, address)";
    let insert = sqlx::query(insert).bind(house.org.as_str());
    let insert = insert.bind(numbers).bind(clients).bind(addresses);
    insert.execute(&house.pool).await.unwrap();
    house
}

/// Returns how many orders contain a text in one of the three.
fn expected(text: &str) -> usize {
    let text = text.to_lowercase();
    let has = |held: &String| held.to_lowercase().contains(&text);
    let all = (0..ORDERS).map(order);
    all.filter(|(number, client, address)| [number, client, address].into_iter().any(has))
        .count()
}

/// A part of some order's text, sometimes followed by a part of another's.
fn texts() -> impl Strategy<Value = String> {
    let piece =
        (0..ORDERS, 0..3_usize, 0..16_usize, 1..16_usize).prop_map(|(nth, of, from, length)| {
            let (number, client, address) = order(nth);
            let text = [number, client, address][of].clone();
            let from = from % text.chars().count();
            text.chars().skip(from).take(length).collect::<String>()
        });
    prop_oneof![
        4 => piece.clone(),
        1 => (piece.clone(), piece).prop_map(|(one, other)| one + &other),
    ]
}

async fn is_found(house: &House, text: String) -> Result<(), TestCaseError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    let sought: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    for limit in [1, 100] {
        let path = format!("/api/v1/orders?limit={limit}&q={sought}");
        let list = house.get(&path).await.json();
        let (of, on_page) = (expected(text), list["data"].as_array().unwrap().len());
        prop_assert_eq!(&list["total"], of, "{}", text);
        prop_assert_eq!(on_page, of.min(limit), "{}", text);
    }
    Ok(())
}

#[test]
fn a_text_is_found_in_what_has_it_and_in_nothing_else() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let house = runtime.block_on(house_of_orders());
    let check = |text: String| runtime.block_on(is_found(&house, text));
    let config = Config {
        cases: TEXTS,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config.clone())
        .run(&texts(), check)
        .unwrap();
    // From here on there are statistics, by which the rarest part of a text is looked up.
    let analyze = sqlx::query("ANALYZE orders").execute(&house.pool);
    runtime.block_on(analyze).unwrap();
    for text in [
        "Client 77",
        "client 7",
        "Person1999@",
        "50%_1 öm",
        "Client person",
    ] {
        check(text.to_owned()).unwrap();
    }
    TestRunner::new(config).run(&texts(), check).unwrap();
    runtime.block_on(house.close());
}
