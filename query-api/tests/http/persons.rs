//! What persons in large circles read: everything that concerns them, in bounded pieces.

use event_log::Binding;
use schemas::sos::Triggered;
use schemas::{AccountId, AggregateType, Event, OrgId, SYSTEM_ORG, SosId, StreamId};
use sqlx::Executor as _;
use uuid::Uuid;

use crate::support::TestApi;

const VIEWER: AccountId = AccountId(1);

/// Opens an API with a circle of so many members, the viewer among them.
async fn api_with_members(members: i64) -> TestApi {
    let api = TestApi::open().await;
    for insert in [
        "INSERT INTO accounts SELECT n, 'Person ' || n, now() FROM generate_series(1, $1) AS n",
        "INSERT INTO circle_members
         SELECT 'large', n, n, now() - interval '1 day', NULL FROM generate_series(1, $1) AS n",
    ] {
        let insert = sqlx::query(insert).bind(members);
        insert.execute(&api.pool).await.unwrap();
    }
    let circle = "INSERT INTO circles VALUES ('large', 1, NULL, 'Large', now())";
    api.pool.execute(circle).await.unwrap();
    api
}

/// A member calls the viewer for help.
async fn call(api: &TestApi, caller: AccountId) {
    let id = SosId::from(Uuid::new_v4());
    let binding = Binding::CallForHelp(caller, id.clone());
    let sealed = api.log.vault().seal(&binding, "{}").await.unwrap();
    let call = Event::SosTriggered(Triggered {
        sos_id: id.clone(),
        user_id: caller,
        audience: vec![VIEWER],
        late: false,
        recorded_at: chrono::Utc::now(),
        sealed,
    });
    let org = OrgId::from(SYSTEM_ORG);
    let stream = StreamId::new(&org, AggregateType::Sos, id.as_str());
    let position = api.append(stream, call).await;
    sqlx::query(
        "INSERT INTO sos_calls (org_id, sos_id, account_id, sequence, triggered_at)
         VALUES ($1, $2, $3, $4, now())",
    )
    .bind(SYSTEM_ORG)
    .bind(id.as_str())
    .bind(i64::try_from(caller.0).unwrap())
    .bind(i64::try_from(position.sequence()).unwrap())
    .execute(&api.pool)
    .await
    .unwrap();
}

#[tokio::test]
async fn no_open_call_is_missed_because_a_circle_is_large() {
    let api = api_with_members(4_000).await;
    let callers: Vec<u64> = (1..=20).map(|nth| nth * 200).collect();
    for caller in &callers {
        call(&api, AccountId(*caller)).await;
    }
    // Nobody in the viewer's circles.
    call(&api, AccountId(9_000)).await;
    let calls = api.get_by(VIEWER, "/sos").await.json();
    let calls = calls["data"].as_array().unwrap().iter();
    let mut told: Vec<_> = calls.map(|one| one["user_id"].as_u64().unwrap()).collect();
    told.sort_unstable();
    assert_eq!(told, callers);
    api.close().await;
}

#[tokio::test]
async fn of_many_persons_those_seen_last_are_shown() {
    let api = api_with_members(1_300).await;
    for insert in [
        // The higher their number, the longer ago.
        "INSERT INTO positions (account_id, recorded_at, lat, lng, received_at)
         SELECT n, now() - make_interval(secs => n), 1, 2, now()
         FROM generate_series(2, 1300) AS n",
        // The second hides.
        "INSERT INTO sharing_pauses VALUES (2, 1, now(), now() + interval '1 hour')",
    ] {
        api.pool.execute(insert).await.unwrap();
    }
    let latest = api.get_by(VIEWER, "/location/latest").await.json();
    let latest = latest["data"].as_array().unwrap().iter();
    let shown: Vec<_> = latest.map(|one| one["user_id"].as_i64().unwrap()).collect();
    assert_eq!(shown, (3..=1_002).collect::<Vec<_>>());
    api.close().await;
}

/// Returns how many members each of the listed circles shows.
async fn members_shown(api: &TestApi, viewer: AccountId, path: &str) -> Vec<usize> {
    let circles = api.get_by(viewer, path).await.json();
    let circles = circles["data"].as_array().unwrap().iter();
    let members = circles.map(|circle| circle["members"].as_array().unwrap().len());
    members.collect()
}

#[tokio::test]
async fn the_more_circles_are_listed_the_fewer_members_of_each() {
    let api = api_with_members(1_300).await;
    // The second person is in many circles more.
    for insert in [
        "INSERT INTO circles
         SELECT 'c' || n, 2, NULL, 'Circle', now() FROM generate_series(1, 24) AS n",
        "INSERT INTO circle_members SELECT 'c' || n, m, m, now(), NULL
         FROM generate_series(1, 24) AS n, generate_series(2, 601) AS m",
    ] {
        api.pool.execute(insert).await.unwrap();
    }
    let first = members_shown(&api, VIEWER, "/circles").await;
    assert_eq!(first, [1_000]);
    let second = AccountId(2);
    let all = members_shown(&api, second, "/circles?limit=100").await;
    assert_eq!(all, [400; 25], "10,000 in all");
    let few = members_shown(&api, second, "/circles?limit=4").await;
    assert!(few.iter().all(|members| *members >= 600), "{few:?}");
    api.close().await;
}
