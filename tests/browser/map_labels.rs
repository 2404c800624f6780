//! Names on the map: circles stay visible beneath them, and one name never covers another.

use harness::Owner;
use serde_json::json;

use crate::driver::browse;
use crate::map::gather;
use crate::system;

/// Records what is drawn from now on, starting over with every picture of the map.
const NOTE: &str = "(() => {
  const of = CanvasRenderingContext2D.prototype;
  const { arc, fillRect, fillText } = of;
  window.drawn = { circles: [], names: [] };
  of.fillRect = function (...box) {
    window.drawn = { circles: [], names: [] };
    return fillRect.apply(this, box);
  };
  of.arc = function (x, y, radius, ...rest) {
    window.drawn.circles.push({ x, y, radius });
    return arc.call(this, x, y, radius, ...rest);
  };
  of.fillText = function (text, x, y) {
    const told = this.measureText(text);
    // Numbers stand within their own circle.
    if (!/^\\d+$/.test(text)) window.drawn.names.push({
      text, left: x - told.width / 2, right: x + told.width / 2,
      top: y - told.actualBoundingBoxAscent, bottom: y + told.actualBoundingBoxDescent,
    });
    return fillText.call(this, text, x, y);
  };
})()";

/// Overlaps in the last drawing.
const COVERED: &str = "(() => {
  const { circles, names } = window.drawn;
  const near = (value, low, high) => Math.min(Math.max(value, low), high);
  const faults = [];
  for (const [nth, one] of names.entries()) {
    for (const { x, y, radius } of circles) {
      const nearest = Math.hypot(near(x, one.left, one.right) - x, near(y, one.top, one.bottom) - y);
      const farthest = Math.hypot(Math.max(x - one.left, one.right - x), Math.max(y - one.top, one.bottom - y));
      // Within a wide circle there is room.
      if (nearest < radius && !(radius >= 48 && farthest < radius)) faults.push(`${one.text} upon a circle of ${radius}`);
    }
    for (const other of names.slice(nth + 1)) {
      const meet = one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
      if (meet) faults.push(`${one.text} upon ${other.text}`);
    }
  }
  return faults;
})()";

#[tokio::test]
async fn names_leave_circles_and_other_names_whole() {
    browse(async |browser| {
        let system = system().await;
        let owner = Owner::sign_in(system).await;
        let mut persons = Vec::new();
        for name in ["Ada Lovelace", "Grace Hopper", "Barbara Liskov", "Katherine"] {
            persons.push(system.person(name).await);
        }
        let members: Vec<_> = persons.iter().collect();
        let circle = gather(&owner, &members).await;
        // So near that their names would cover each other's circles at most heights of the map.
        for (nth, person) in (0_i32..).zip(&persons) {
            let aside = f64::from(nth);
            person.is_at(53.5 + 0.004 * aside, 9.9 + 0.006 * (aside % 2.0)).await;
        }
        let places = format!("/circles/{circle}/places");
        for (name, lat, lng) in [("Harbour office", 53.502, 9.903), ("Depot", 53.509, 9.901)] {
            let place = json!({"name": name, "lat": lat, "lng": lng, "radius_m": 150});
            persons[0].client.post(&places, &place).await.ok(201);
        }
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.go("/dashboard/map").await;
        page.sees("Live.").await;
        page.sees("Harbour office").await;
        page.sees("53.5120, 9.9060").await;
        page.run(NOTE).await;
        page.button("Show everybody").click().await;
        page.until("the map to be drawn", "window.drawn.circles.length >= 4").await;
        for button in ["Zoom out", "Zoom in", "Zoom in", "Zoom in", "Zoom in"] {
            let drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => true)";
            page.until("a picture", drawn).await;
            assert_eq!(page.run(COVERED).await, json!([]));
            page.button(button).click().await;
        }
        let named = page.run("window.drawn.names.length").await;
        assert!(named.as_u64() > Some(1), "{named} names were drawn");
    })
    .await;
}
