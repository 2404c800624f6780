//! A headless Chromium that a test uses as a person would, by the browser's own protocol.

mod chromium;
mod found;
mod page;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};

use harness::System;
use serde_json::json;
use tokio::sync::Semaphore;

pub(crate) use self::chromium::tell;
use self::page::TIMEOUT;
pub(crate) use self::page::{Page, Scheme};
use self::wire::Wire;

/// Number of tests that use the browser at a time: each keeps one or two of its pages in memory.
static PLACES: Semaphore = Semaphore::const_new(4);

/// Waits as long as for anything on a page.
pub(crate) async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    harness::eventually_within(TIMEOUT, what, probe).await
}

/// One test's share of the browser.
pub(crate) struct Browser {
    wire: Arc<Wire>,
    base: String,
    pages: Mutex<Vec<Page>>,
}

/// Runs a test in a browser, and asserts that its pages have written nothing to their consoles. The
/// test's return value lives until then: a system that pages still read. The test is skipped if no
/// Chromium is installed.
pub(crate) async fn browse<T>(test: impl AsyncFnOnce(&Browser) -> T) {
    let Some(address) = chromium::address() else {
        return;
    };
    let _place = PLACES.acquire().await.expect("a place");
    let base = format!("http://{}", crate::system().await.addr());
    let browser = Browser {
        wire: Arc::new(Wire::connect(address).await),
        base,
        pages: Mutex::default(),
    };
    let _kept = test(&browser).await;
    let pages = std::mem::take(&mut *browser.pages.lock().unwrap_or_else(PoisonError::into_inner));
    for page in pages {
        page.has_a_quiet_console().await;
    }
}

impl Browser {
    /// Opens a page with its own cookies, storage and permissions, as of another person.
    pub(crate) async fn page(&self) -> Page {
        self.page_at(&self.base).await
    }

    /// The same for a system that is not the shared one.
    pub(crate) async fn page_of(&self, system: &System) -> Page {
        self.page_at(&format!("http://{}", system.addr())).await
    }

    async fn page_at(&self, base: &str) -> Page {
        let call = async |method: &str, params| self.wire.call("", method, params).await.unwrap();
        let context = call(
            "Target.createBrowserContext",
            json!({"disposeOnDetach": true}),
        )
        .await;
        let context = context["browserContextId"].as_str().unwrap().to_owned();
        let target = json!({"url": "about:blank", "browserContextId": context});
        let target = call("Target.createTarget", target).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = call("Target.attachToTarget", attach).await;
        let session = attached["sessionId"].as_str().unwrap();
        let page = Page::new(self.wire.clone(), session, &context, base).await;
        let pages = &mut *self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.push(page.clone());
        page
    }
}
