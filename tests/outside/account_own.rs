//! `GET /auth/export`, `POST /auth/delete`: one's own data as a file, and the end of one's account.

use harness::{Client, PASSWORD, Person, System, eventually};
use serde_json::{Value, json};

use super::accounts::login;
use crate::{SHAPE, system};

async fn export(person: &Person, position: &str) -> Value {
    let answer = person.client.get_at("/auth/export", position).await;
    let disposition = answer.header("content-disposition").unwrap_or_default();
    assert!(
        disposition.starts_with("attachment; filename=\"waypost-account-"),
        "{disposition}"
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.ok(200)
}

async fn delete(client: &Client, password: &str) -> harness::Answer {
    let body = json!({"password": password});
    client.post("/auth/delete", &body).await
}

#[tokio::test]
async fn an_export_holds_all_that_is_kept_of_oneself_and_nothing_of_others() {
    let system = system().await;
    let (ada, bob) = (
        system.person("Ada Own").await,
        system.person("Bob Other").await,
    );
    let circle = ada.makes_circle().await;
    bob.joins(&circle, &ada).await;
    let places = format!("/circles/{circle}/places");
    let place = json!({"name": "Harbour", "lat": 53.5, "lng": 9.9, "radius_m": 150});
    ada.client.post(&places, &place).await.ok(201);
    let call = json!({"message": "Flat tyre", "lat": 53.5, "lng": 9.9});
    let called = ada.client.post("/sos/trigger", &call).await.ok(202);
    bob.client
        .post("/sos/trigger", &json!({"message": "Not hers"}))
        .await
        .ok(202);
    let resolve = format!("/sos/{}/resolve", called["sos_id"].as_str().unwrap());
    ada.client.post(&resolve, &json!({})).await.ok(200);
    let tier = ["account", "tier", &ada.email, "enterprise"];
    system.waypost(&tier).await;
    let enough = eventually("the tier to be known", async || {
        let fixes = vec![json!({"lat": 1, "lng": 1, "recorded_at": "2026-01-02T02:00:00Z"}); 31];
        let sent = ada.client.post("/location/update", &json!(fixes)).await;
        (sent.status == 202).then_some(())
    });
    enough.await;
    // More than one read's batch.
    let mut position = String::new();
    for minute in 0..11 {
        let fixes: Vec<Value> = (0..100)
            .map(|nth| {
                let at = format!("2026-01-02T03:{minute:02}:{:02}.{:03}Z", nth / 2, nth % 2);
                json!({"lat": 12.25, "lng": 23.5, "recorded_at": at})
            })
            .collect();
        let sent = ada.client.post("/location/update", &json!(fixes)).await;
        sent.ok(202);
        position = sent.position();
    }
    bob.is_at(66.125, 1.0).await;

    let own = export(&ada, &position).await;
    assert_eq!(own["account"]["id"], ada.id);
    assert_eq!(own["account"]["name"], "Ada Own");
    assert_eq!(own["account"]["email"], ada.email);
    assert_eq!(own["account"]["tier"], "enterprise");
    assert_eq!(own["circles"][0]["id"], circle);
    assert_eq!(own["circles"][0]["own"], true);
    assert_eq!(own["places"][0]["name"], "Harbour");
    let types: Vec<_> = own["sos"].as_array().unwrap().iter().collect();
    assert_eq!(types.len(), 2, "{}", own["sos"]);
    assert_eq!(types[0]["type"], "sos.triggered");
    assert_eq!(types[0]["data"]["message"], "Flat tyre");
    assert_eq!(types[1]["type"], "sos.resolved");
    let fixes = own["positions"].as_array().unwrap();
    assert_eq!(fixes.len(), 1_101);
    assert_eq!(fixes[0]["lat"], 12.25);
    let text = own.to_string();
    for other in ["Bob Other", "Not hers", "66.125", &bob.email] {
        assert!(!text.contains(other), "{other}");
    }
}

#[tokio::test]
async fn an_export_finds_ones_own_visits_among_those_of_others() {
    let system = system().await;
    let (ada, bob) = (
        system.person("Ada Visits").await,
        system.person("Bob Visits").await,
    );
    let circle = ada.makes_circle().await;
    bob.joins(&circle, &ada).await;
    let places = format!("/circles/{circle}/places");
    let place = json!({"name": "Harbour", "lat": 53.5, "lng": 9.9, "radius_m": 150});
    ada.client.post(&places, &place).await.ok(201);
    for person in [&bob, &ada] {
        person.is_at(53.5, 9.9).await;
        let whole = |own: &Value| own["visits"].as_array().is_some_and(|all| !all.is_empty());
        let own = person.until("/auth/export", whole).await;
        let visits = own["visits"].as_array().unwrap();
        assert_eq!(visits.len(), 1, "{own}");
        assert_eq!(visits[0]["type"], "place.entered");
        assert_eq!(visits[0]["data"]["user_id"], person.id);
        assert_eq!(visits[0]["data"]["name"], "Harbour");
    }
}

#[tokio::test]
async fn an_export_needs_a_token() {
    let client = system().await.client();
    client.get("/auth/export").await.error(401);
    client
        .with_key("wp_no_token_at_all")
        .get("/auth/export")
        .await
        .error(401);
}

#[tokio::test]
async fn who_deletes_their_account_is_forgotten() {
    let system = system().await;
    let client = system.client();
    let (ada, bob) = (
        system.person("Ada Leaves").await,
        system.person("Bob Stays").await,
    );
    let circle = bob.makes_circle().await;
    ada.joins(&circle, &bob).await;
    let position = ada.is_at(7.5, 8.5).await;
    assert_eq!(bob.sees_at(&position).await, [(ada.id, 7.5)]);
    let other = login(&client, &ada.email, PASSWORD).await.ok(200);
    let other = client.with_key(other["access_token"].as_str().unwrap());

    let refused = delete(&ada.client, "a wrong password").await.error(401);
    assert!(refused.contains("password"), "{refused}");
    ada.client.get("/circles").await.ok(200);
    let missing = ada.client.post("/auth/delete", &json!({})).await.error(400);
    assert!(missing.contains("password"), "{missing}");
    delete(&client, PASSWORD).await.error(401);

    let deleted = delete(&ada.client, PASSWORD).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text());
    let position = deleted.position();
    for ended in [&ada.client, &other] {
        ended.get("/circles").await.error(401);
    }
    login(&client, &ada.email, PASSWORD).await.error(401);
    assert!(bob.sees_at(&position).await.is_empty());
    // The address is free for others.
    let again = json!({"name": "Ada", "email": ada.email, "password": PASSWORD});
    let again = client.post("/auth/register", &again).await.ok(201);
    assert_ne!(again["user"]["id"], ada.id);
}

#[tokio::test]
async fn a_deletion_whose_answer_was_lost_is_answered_again() {
    let system = system().await;
    let ada = system.person("Ada Twice").await;
    let body = json!({"password": PASSWORD});
    for _ in 0..2 {
        let deleted = ada.client.post_once("/auth/delete", "bye", &body).await;
        assert_eq!(deleted.status, 204, "{}", deleted.text());
    }
    let other = ada.client.post_once("/auth/delete", "other", &body).await;
    other.error(401);
}

#[tokio::test]
async fn passwords_cannot_be_guessed_by_way_of_the_deletion() {
    let strict = [("WAYPOST_SIGN_IN_PER_ACCOUNT", "4")];
    let system = System::start(SHAPE, &strict).await;
    let ada = system.person("Ada Guessed").await;
    for _ in 0..4 {
        delete(&ada.client, "a guess").await.error(401);
    }
    delete(&ada.client, PASSWORD).await.error(429);
    ada.client.get("/circles").await.ok(200);
}

#[tokio::test]
async fn what_was_put_aside_of_a_person_goes_with_their_account() {
    let system = System::start(SHAPE, &[]).await;
    let person = system.person("Ottilie Beiseite").await;
    let mut database = system.database().await;
    let account: i64 = eventually("the account to be read", async || {
        let found = sqlx::query_scalar("SELECT account_id FROM accounts");
        found.fetch_optional(&mut database).await.unwrap()
    })
    .await;
    let kept = "SELECT (SELECT count(*) FROM dead_letters)
                     + (SELECT count(*) FROM pg_namespace WHERE nspname = 'rebuild_accounts')";
    let (streams, copy) = (
        [("accounts", "account"), ("positions", "track")],
        "CREATE SCHEMA rebuild_accounts; CREATE TABLE rebuild_accounts.projection_checkpoints
         AS SELECT * FROM projection_checkpoints",
    );
    for (projection, aggregate) in streams {
        sqlx::query(
            "INSERT INTO dead_letters (projection, log, sequence, subject, org_id, aggregate,
                 aggregate_id, reason)
             VALUES ($1, 'events', 900000000, 'evt.x', '_', $2, $3, 'name: Ottilie')",
        )
        .bind(projection)
        .bind(aggregate)
        .bind(account.to_string())
        .execute(&mut database)
        .await
        .unwrap();
    }
    sqlx::raw_sql(copy).execute(&mut database).await.unwrap();
    let left: i64 = sqlx::query_scalar(kept)
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(left, 3);
    assert_eq!(delete(&person.client, PASSWORD).await.status, 204);
    eventually("nothing of them to be kept", async || {
        let left = sqlx::query_scalar::<_, i64>(kept).fetch_one(&mut database);
        (left.await.unwrap() == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_export_holds_more_of_each_kind_than_is_read_at_a_time() {
    const MANY: usize = 260;
    let system = system().await;
    let ada = system.person("Ada Many").await;
    let tier = ["account", "tier", &ada.email, "enterprise"];
    system.waypost(&tier).await;
    let circle = ada.makes_circle().await;
    let places = format!("/circles/{circle}/places");
    let mut position = String::new();
    for nth in 0..MANY {
        let place = json!({"name": format!("P{nth}"), "lat": 53.5, "lng": 9.9, "radius_m": 150});
        ada.client.post(&places, &place).await.ok(201);
        let until = json!({"until": format!("2031-01-01T00:{:02}:{:02}Z", nth / 60, nth % 60)});
        let paused = ada.client.post("/location/pause", &until).await;
        assert_eq!(paused.status, 204);
        position = paused.position();
    }
    let own = export(&ada, &position).await;
    let named = |field: &str, name: &str| -> Vec<String> {
        let all = own[field].as_array().unwrap().iter();
        all.map(|one| one[name].as_str().unwrap().to_owned())
            .collect()
    };
    let expected: Vec<_> = (0..MANY).map(|nth| format!("P{nth}")).collect();
    assert_eq!(
        named("places", "name"),
        expected,
        "each once, in their order"
    );
    let pauses = named("pauses", "until");
    assert_eq!(pauses.len(), MANY);
}
