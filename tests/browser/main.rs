//! What persons do on the pages, in a headless Chromium.
//!
//! If no Chromium is installed, all of it is skipped, with a message.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that finds something else than it expects has failed"
)]

mod app;
mod app_states;
mod demo;
mod driver;
mod editors;
mod every_page;
mod keys;
mod map;
mod map_labels;
mod pictures;
mod records;
mod runs;
mod sign_in;
mod sound;
mod system;
mod webhooks;
mod without_script;

use harness::{Shape, System};
use tokio::sync::OnceCell;

/// The system that tests share; with the demo, whose pages are full.
async fn system() -> &'static System {
    static SYSTEM: OnceCell<System> = OnceCell::const_new();
    let start = || System::start(Shape::One, &[("WAYPOST_DEMO", "true")]);
    SYSTEM.get_or_init(start).await
}
