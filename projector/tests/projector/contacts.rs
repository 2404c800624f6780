//! Contacts: rows and totals.

use crate::support::{World, contact, deleted};
use schemas::{AggregateType, Event, Log};

#[tokio::test]
async fn a_written_contact_becomes_a_row() {
    let world = World::new().await;
    let projector = world.start();
    let ada = contact("ada", "Ada");
    let stream = world.stream(AggregateType::Contact, "ada");
    let at = world
        .append(stream, 0, vec![Event::ContactCreated(ada.clone())])
        .await;
    world.caught_up(Log::Events, at).await;
    let row: (String, Option<String>, Option<String>, Option<String>) =
        sqlx::query_as("SELECT org_id, first_name, email, city FROM contacts WHERE id = 'ada'")
            .fetch_one(&world.pool)
            .await
            .unwrap();
    assert_eq!(
        row,
        (world.org.to_string(), ada.first_name, ada.email, None)
    );
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn the_total_follows_creation_update_and_deletion() {
    let world = World::new().await;
    let projector = world.start();
    let stream = world.stream(AggregateType::Contact, "c");
    let put = |name| Event::ContactUpdated(contact("c", name));
    let mut at = 0;
    let total = "SELECT count FROM totals WHERE kind = 'contacts'";
    let steps = [
        (Event::ContactCreated(contact("c", "A")), 1),
        (put("B"), 1),
        (deleted("c"), 0),
        (Event::ContactCreated(contact("c", "C")), 1),
    ];
    for (event, expected) in steps {
        at = world.append(stream.clone(), at, vec![event]).await;
        world.caught_up(Log::Events, at).await;
        assert_eq!(world.count(total).await, expected);
        assert_eq!(world.count("SELECT count(*) FROM contacts").await, expected);
    }
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_character_that_postgres_cannot_hold_costs_no_row() {
    let world = World::new().await;
    let projector = world.start();
    let stream = world.stream(AggregateType::Contact, "odd");
    let odd = contact("odd", "A\0B");
    let at = world
        .append(stream, 0, vec![Event::ContactCreated(odd)])
        .await;
    world.caught_up(Log::Events, at).await;
    let name: String = sqlx::query_scalar("SELECT first_name FROM contacts")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(name, "A\u{fffd}B");
    projector.stop().await;
    world.end().await;
}
