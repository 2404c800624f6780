//! Requirements on every page: it is accessible, nothing moves on its own, it fits and is light.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::driver::{Page, tell};

/// Path to which `scripts/prepare` downloads the accessibility checker.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.waypost/axe/axe.min.js");

/// Runs every rule; a finding of any level counts.
const FIND: &str = "axe.run(document, { resultTypes: ['violations'], preload: false })
  .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map((node) =>
    `${id}: ${node.target} ${node.any.concat(node.all, node.none)[0]?.message ?? ''}`)))";

/// Maximum weight of a page, without the outlines of the map.
const MOST_BYTES: f64 = 150_000.0;

/// A word that changes in its place shifts its neighbours by less than this.
const A_WORD: f64 = 0.001;

/// The browser's own measurements of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Milliseconds until something was visible.
    pub(crate) first_content_ms: f64,
    /// Everything fetched for it except the outlines of the map.
    pub(crate) bytes: f64,
}

/// The entries are read after two more frames have been drawn, and the first with content.
const MEASURE: &str = "(async () => {
  const shifts = [];
  const observer = new PerformanceObserver((list) => shifts.push(...list.getEntries()));
  observer.observe({ type: 'layout-shift', buffered: true });
  const first = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
  for (let frame = 0; frame < 2 || (first() === undefined && frame < 600); frame += 1) await new Promise(requestAnimationFrame);
  shifts.push(...observer.takeRecords());
  observer.disconnect();
  const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const own = loaded.filter(({ name }) => !name.endsWith('/world.json'));
  return {
    first: first() ?? 0,
    shift: shifts.filter((one) => !one.hadRecentInput).reduce((sum, { value }) => sum + value, 0),
    moved: shifts.flatMap(({ sources }) => sources.map(({ node }) => node?.id || node?.className || node?.nodeName)),
    bytes: own.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  };
})()";

/// Measures a page that was just opened, and reports what is wrong with it on any machine.
pub(crate) async fn measure(page: &Page, faults: &mut Vec<String>) -> Measured {
    let told = page.run(MEASURE).await;
    let number = |name: &str| told[name].as_f64().unwrap();
    if number("shift") > A_WORD {
        faults.push(format!("jumps by {}: {}", told["shift"], told["moved"]));
    }
    if number("bytes") > MOST_BYTES {
        faults.push(format!("weighs {} bytes", told["bytes"]));
    }
    Measured {
        first_content_ms: number("first"),
        bytes: number("bytes"),
    }
}

/// Elements beyond the window's side, if the page can be scrolled there.
const BEYOND: &str = "document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('body *')]
    .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('.scroll, pre'))
    .map((one) => one.outerHTML.slice(0, 100)).slice(0, 3).concat('…')";

/// Reports what makes the page wider than its window.
pub(crate) async fn fits(page: &Page, faults: &mut Vec<String>) {
    let beyond = page.run(BEYOND).await;
    if beyond != json!([]) {
        faults.push(format!("scrolls sideways: {beyond}"));
    }
}

/// Reports what axe-core finds on the page, of any level.
pub(crate) async fn shuts_nobody_out(page: &Page, faults: &mut Vec<String>) {
    let Some(axe) = axe() else { return };
    if page.run("typeof axe").await == "undefined" {
        page.run(axe).await;
    }
    let found = page.run(FIND).await;
    let found = found.as_array().unwrap().iter();
    faults.extend(found.map(ToString::to_string));
}

/// Asserts that a page in its current state is no wider than its window and is accessible.
pub(crate) async fn is_sound(page: &Page) {
    let faults = &mut Vec::new();
    fits(page, faults).await;
    shuts_nobody_out(page, faults).await;
    assert!(
        faults.is_empty(),
        "{}: {}",
        page.path().await,
        faults.join("\n")
    );
}

/// The script, if it could be fetched; otherwise this is reported once.
fn axe() -> Option<&'static str> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        if let Ok(script) = std::fs::read_to_string(Path::new(AXE)) {
            // The script's own value is not needed.
            return Some(script + "\n;0");
        }
        tell("axe-core is not here (see scripts/prepare): accessibility is not checked this time");
        None
    };
    SCRIPT.get_or_init(read).as_deref()
}

/// The address of the first link that a selector matches.
pub(crate) async fn first_link(page: &Page, selector: &str) -> String {
    let script = format!(
        "document.querySelector({})?.getAttribute('href')",
        json!(selector)
    );
    match page.run(&script).await {
        Value::String(path) => path,
        _ => panic!("no {selector} at {}", page.path().await),
    }
}
