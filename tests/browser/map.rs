//! The map: persons as they move, and their calls for help.

use harness::{Owner, Person};
use serde_json::json;

use crate::app::enter;
use crate::demo::key_of;
use crate::driver::{Page, browse};
use crate::sound::is_sound;
use crate::system;

/// Adds these persons to a new circle of the organization, and returns it.
pub(crate) async fn gather(owner: &Owner, persons: &[&Person]) -> String {
    let client = key_of(owner, &["circles:manage"]).await;
    let circle = client
        .post("/api/v1/circles", &json!({"name": "Field"}))
        .await;
    let circle = circle.ok(201)["id"].as_str().unwrap().to_owned();
    for person in persons {
        let invite = format!("/api/v1/circles/{circle}/invites");
        let invite = client.post(&invite, &json!({})).await.ok(201);
        person.joins_by(invite["code"].as_str().unwrap()).await;
    }
    circle
}

/// The centre of everything drawn in the colour of persons: `[x, y]`, or null.
const MARKED: &str = "(() => {
  const map = document.querySelector('canvas.map');
  const read = (width, height) => Object.assign(document.createElement('canvas'), { width, height })
    .getContext('2d', { willReadFrequently: true });
  const probe = read(1, 1);
  probe.fillStyle = getComputedStyle(map).getPropertyValue('--accent');
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  const { width, height } = map;
  const copy = read(width, height);
  copy.drawImage(map, 0, 0);
  const { data } = copy.getImageData(0, 0, width, height);
  let [x, y, count] = [0, 0, 0];
  for (let at = 0; at < data.length; at += 4) {
    if (data[at] !== red || data[at + 1] !== green || data[at + 2] !== blue) continue;
    x += at / 4 % width;
    y += Math.floor(at / 4 / width);
    count += 1;
  }
  return count > 50 ? [x / count, y / count] : null;
})()";

async fn marker(page: &Page) -> [f64; 2] {
    page.wait("a marker on the map", async || {
        let middle = page.run(MARKED).await;
        Some([middle[0].as_f64()?, middle[1].as_f64()?])
    })
    .await
}

#[tokio::test]
async fn a_marker_moves_with_the_person() {
    browse(async |browser| {
        let system = system().await;
        let owner = Owner::sign_in(system).await;
        let person = system.person("Grace").await;
        gather(&owner, &[&person]).await;
        person.is_at(53.5, 9.9).await;
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.go("/dashboard/map").await;
        page.sees("Live.").await;
        page.sees("53.5000, 9.9000").await;
        let before = marker(&page).await;
        person.is_at(53.5, 10.2).await;
        page.sees("53.5000, 10.2000").await;
        page.wait("the marker to move east", async || {
            let now = marker(&page).await;
            (now[0] > before[0] + 30.0 && (now[1] - before[1]).abs() < 2.0).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_call_for_help_is_seen_answered_and_resolved() {
    browse(async |browser| {
        let system = system().await;
        let owner = Owner::sign_in(system).await;
        let (caller, friend) = (system.person("Ada").await, system.person("Grace").await);
        gather(&owner, &[&caller, &friend]).await;
        let (map, app) = (browser.page().await, browser.page().await);
        map.is_of(&owner).await;
        map.go("/dashboard/map").await;
        map.sees("Live.").await;
        enter(&app, &friend.email).await;
        app.sees("Live.").await;
        let call = json!({"message": "Flat tyre, bad corner", "lat": 53.5, "lng": 9.9});
        caller.client.post("/sos/trigger", &call).await.ok(202);
        map.sees("SOS: Ada").await;
        map.sees("not acknowledged yet").await;
        map.until("the title to tell", "document.title.startsWith('SOS (1)')")
            .await;
        is_sound(&map).await;
        app.sees("Flat tyre, bad corner").await;
        is_sound(&app).await;
        app.button("I have seen it").click().await;
        app.sees("acknowledged").await;
        map.sees_no("not acknowledged yet").await;
        map.sees("acknowledged").await;
        app.button("Resolved").click().await;
        app.sees_no("SOS: Ada").await;
        map.sees_no("SOS: Ada").await;
        map.until("the title to be quiet", "!document.title.includes('SOS')")
            .await;
    })
    .await;
}

#[tokio::test]
async fn an_owner_acknowledges_and_resolves_a_call_for_help() {
    browse(async |browser| {
        let system = system().await;
        let owner = Owner::sign_in(system).await;
        let caller = system.person("Ada").await;
        gather(&owner, &[&caller]).await;
        let (map, app) = (browser.page().await, browser.page().await);
        map.is_of(&owner).await;
        map.go("/dashboard/map").await;
        map.sees("Live.").await;
        enter(&app, &caller.email).await;
        app.sees("Live.").await;
        let call = json!({"message": "Flat tyre", "lat": 53.5, "lng": 9.9});
        caller.client.post("/sos/trigger", &call).await.ok(202);
        map.sees("not acknowledged yet").await;
        app.sees("Flat tyre").await;
        map.button("Acknowledge the SOS of Ada").click().await;
        map.sees_no("not acknowledged yet").await;
        app.sees("acknowledged").await;
        // Opening the person's own page now shows the call, too.
        app.go("/app").await;
        app.sees("Flat tyre").await;
        app.sees("acknowledged").await;
        app.until("the title to tell", "document.title.startsWith('SOS!')")
            .await;
        let focused = "document.activeElement.textContent === 'Resolve the SOS of Ada'";
        map.until("focus to stay with the call", focused).await;
        is_sound(&map).await;
        // Opening the page now shows the current state.
        map.go("/dashboard/map").await;
        map.sees("acknowledged").await;
        map.button("Resolve the SOS of Ada").click().await;
        map.sees_no("SOS: Ada").await;
        app.sees_no("SOS: Ada").await;
    })
    .await;
}
