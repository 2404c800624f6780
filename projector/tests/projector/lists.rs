//! Keys, webhooks, organizations and deliveries.

use crate::support::{World, now};
use schemas::delivery::{Attempted, Message, Outcome};
use schemas::{AggregateType, Event, EventId, Log, Sealed, key, organization, webhook};
use serde_json::{Value, json};
use uuid::Uuid;

async fn rows(world: &World, sql: &'static str) -> Value {
    sqlx::query_scalar(sql)
        .fetch_one(&world.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_key_is_listed_until_it_is_revoked() {
    let world = World::new().await;
    let projector = world.start();
    let created = |id: &str, scopes: &[&str]| {
        Event::KeyCreated(key::Created {
            key_id: id.into(),
            name: format!("key {id}"),
            scopes: scopes.iter().map(|s| (*s).to_owned()).collect(),
            rate_limit: 7,
            expires_at: None,
            key_sha256: "00".repeat(32),
            created_by: key::Giver::Operator,
        })
    };
    let one = world.stream(AggregateType::Key, "k1");
    let at = world
        .append(
            one.clone(),
            0,
            vec![created("k1", &["admin", "events:read"])],
        )
        .await;
    let two = world.stream(AggregateType::Key, "k2");
    let end = world.append(two, 0, vec![created("k2", &[])]).await;
    world.caught_up(Log::Events, end).await;
    let listed = rows(
        &world,
        "SELECT json_agg(json_build_array(key_id, scopes, rate_limit) ORDER BY key_id) FROM api_keys",
    );
    assert_eq!(
        listed.await,
        json!([["k1", ["admin", "events:read"], 7], ["k2", [], 7]])
    );
    let revoked = Event::KeyRevoked(key::Revoked {
        key_id: "k1".into(),
    });
    let end = world.append(one, at, vec![revoked]).await;
    world.caught_up(Log::Events, end).await;
    let left = rows(&world, "SELECT json_agg(key_id) FROM api_keys");
    assert_eq!(left.await, json!(["k2"]));
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn an_organization_has_its_name() {
    let world = World::new().await;
    let projector = world.start();
    let created = Event::OrganizationCreated(organization::Created {
        org_id: world.org.clone(),
        name: "Acme".to_owned(),
    });
    let stream = world.stream(AggregateType::Organization, world.org.as_str());
    let end = world.append(stream, 0, vec![created]).await;
    world.caught_up(Log::Events, end).await;
    let listed = rows(&world, "SELECT json_agg(name) FROM organizations");
    assert_eq!(listed.await, json!(["Acme"]));
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_webhook_shows_its_last_state() {
    let world = World::new().await;
    let projector = world.start();
    let stream = world.stream(AggregateType::Webhook, "h1");
    let created = Event::WebhookCreated(webhook::Created {
        id: "h1".into(),
        url: "https://one.example".to_owned(),
        events: vec!["run.*".to_owned(), "a,\"b".to_owned()],
        description: None,
        secret: Sealed::from_ciphertext("sealed".to_owned()),
    });
    let updated = |status| {
        Event::WebhookUpdated(webhook::Updated {
            id: "h1".into(),
            url: "https://two.example".to_owned(),
            events: Vec::new(),
            description: Some("two".to_owned()),
            status,
        })
    };
    let disabled = Event::WebhookDisabled(webhook::Disabled {
        id: "h1".into(),
        reason: "nothing but failure".to_owned(),
    });
    let deleted = Event::WebhookDeleted(webhook::Deleted { id: "h1".into() });
    let steps = [
        (
            created,
            json!([[
                "https://one.example",
                ["run.*", "a,\"b"],
                null,
                "ENABLED",
                null
            ]]),
        ),
        (
            disabled,
            json!([[
                "https://one.example",
                ["run.*", "a,\"b"],
                null,
                "DISABLED",
                "nothing but failure"
            ]]),
        ),
        (
            updated(webhook::Status::Enabled),
            json!([["https://two.example", [], "two", "ENABLED", null]]),
        ),
        (deleted, json!([])),
    ];
    let mut at = 0;
    for (event, expected) in steps {
        at = world.append(stream.clone(), at, vec![event]).await;
        world.caught_up(Log::Events, at).await;
        let listed = rows(
            &world,
            "SELECT coalesce(json_agg(json_build_array(url, events, description, status,
                 disabled_reason)), '[]') FROM webhooks",
        );
        assert_eq!(listed.await, expected);
    }
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_delivery_gathers_its_attempts() {
    let world = World::new().await;
    let projector = world.start();
    let event_id = EventId(Uuid::new_v4());
    let attempted = |attempt, error: Option<&str>, outcome| {
        Event::DeliveryAttempted(Attempted {
            message: Message {
                delivery_id: "d1".into(),
                webhook_id: "h1".into(),
                event_id,
                event_sequence: 7,
                event_type: "run.succeeded".to_owned(),
            },
            attempt,
            at: now(),
            duration_ms: u64::from(attempt),
            status: error.is_none().then_some(200),
            error: error.map(str::to_owned),
            response: Some("a\0b".to_owned()),
            outcome,
        })
    };
    let stream = world.stream(AggregateType::Delivery, "d1");
    let retrying = || Outcome::Retrying {
        next_attempt_at: now(),
    };
    let first = vec![
        attempted(1, Some("refused"), retrying()),
        attempted(2, Some("refused"), retrying()),
    ];
    let at = world.append(stream.clone(), 0, first).await;
    world.caught_up(Log::Deliveries, at).await;
    let state = "SELECT json_agg(json_build_array(status, next_attempt_at IS NULL,
        jsonb_array_length(attempts))) FROM deliveries";
    assert_eq!(rows(&world, state).await, json!([["PENDING", false, 2]]));
    let last = vec![attempted(3, None, Outcome::Succeeded)];
    let at = world.append(stream, at, last).await;
    world.caught_up(Log::Deliveries, at).await;
    assert_eq!(rows(&world, state).await, json!([["SUCCEEDED", true, 3]]));
    let attempts = rows(&world, "SELECT attempts FROM deliveries").await;
    assert_eq!(attempts[2]["durationMs"], 3);
    assert_eq!(attempts[0]["error"], "refused");
    assert_eq!(attempts[0]["response"], "a\u{fffd}b");
    let totals = "SELECT json_agg(json_build_array(parent, state, count) ORDER BY state)
        FROM totals WHERE kind = 'deliveries'";
    let counted = json!([["h1", "PENDING", 0], ["h1", "SUCCEEDED", 1]]);
    assert_eq!(rows(&world, totals).await, counted);
    projector.stop().await;
    world.end().await;
}
