//! A page, and a person's actions on it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{Owner, eventually_within};
use serde_json::{Value, json};

use super::found::Found;
use super::wire::{Event, Wire};

/// Whether the page is complete, with all scripts started.
const IS_READY: &str = "document.readyState === 'complete'";

/// How long anything may take to appear, on a machine that builds at the same time.
pub(super) const TIMEOUT: Duration = Duration::from_mins(1);

/// Roles of input elements.
const FIELDS: &[&str] = &["textbox", "searchbox", "combobox", "spinbutton", "checkbox"];

/// A page of the browser.
#[derive(Clone)]
pub(crate) struct Page {
    wire: Arc<Wire>,
    session: String,
    context: String,
    base: String,
    /// Console messages allowed because the test does something wrong on purpose.
    allowed: Arc<Mutex<Vec<String>>>,
}

/// Colour schemes that a person may prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

impl Page {
    pub(super) async fn new(wire: Arc<Wire>, session: &str, context: &str, base: &str) -> Self {
        let page = Self {
            wire,
            session: session.to_owned(),
            context: context.to_owned(),
            base: base.to_owned(),
            allowed: Arc::default(),
        };
        for domain in ["Runtime.enable", "Log.enable"] {
            page.call(domain, json!({})).await;
        }
        let focused = json!({"enabled": true});
        page.call("Emulation.setFocusEmulationEnabled", focused)
            .await;
        page.is_wide(1280).await;
        page
    }

    pub(super) async fn try_call(&self, method: &str, params: Value) -> Result<Value, String> {
        self.wire.call(&self.session, method, params).await
    }

    pub(super) async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.try_call(method, params).await;
        answer.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sets the window's width.
    pub(crate) async fn is_wide(&self, width: u32) {
        self.has_size(width, 900).await;
    }

    /// Sets the window's size.
    pub(crate) async fn has_size(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Sets the preferred colour scheme.
    pub(crate) async fn prefers(&self, scheme: Scheme) {
        let value = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let feature = json!([{"name": "prefers-color-scheme", "value": value}]);
        let media = json!({"features": feature});
        self.call("Emulation.setEmulatedMedia", media).await;
    }

    /// Disables the pages' scripts from now on.
    pub(crate) async fn without_scripts(&self) {
        let off = json!({"value": true});
        self.call("Emulation.setScriptExecutionDisabled", off).await;
    }

    /// Runs a script before those of every page opened from now on.
    pub(crate) async fn begins_with(&self, script: &str) {
        self.call("Page.enable", json!({})).await;
        let source = json!({"source": script});
        self.call("Page.addScriptToEvaluateOnNewDocument", source)
            .await;
    }

    /// Sets the location and lets pages read it.
    pub(crate) async fn stands_at(&self, lat: f64, lng: f64) {
        let permissions = json!({
            "permissions": ["geolocation"], "origin": self.base, "browserContextId": self.context,
        });
        let granted = self
            .wire
            .call("", "Browser.grantPermissions", permissions)
            .await;
        granted.unwrap();
        let place = json!({"latitude": lat, "longitude": lng, "accuracy": 10});
        self.call("Emulation.setGeolocationOverride", place).await;
    }

    /// Saves downloads in a folder.
    pub(crate) async fn downloads_to(&self, folder: &Path) {
        let behavior = json!({
            "behavior": "allow", "downloadPath": folder, "browserContextId": self.context,
        });
        let set = self
            .wire
            .call("", "Browser.setDownloadBehavior", behavior)
            .await;
        set.unwrap();
    }

    /// Uses the session of a person who has signed in elsewhere.
    pub(crate) async fn is_of(&self, owner: &Owner) {
        let (name, value) = owner.cookie.split_once('=').unwrap();
        self.has_cookie(name, value).await;
    }

    pub(crate) async fn has_cookie(&self, name: &str, value: &str) {
        let url = format!("{}/dashboard", self.base);
        let cookie = json!({"name": name, "value": value, "url": url, "path": "/dashboard"});
        self.call("Network.setCookie", cookie).await;
    }

    /// Opens an address of the system and waits until the page is complete.
    pub(crate) async fn go(&self, path: &str) {
        let url = format!("{}{path}", self.base);
        let gone = self.call("Page.navigate", json!({"url": url})).await;
        assert!(gone["errorText"].is_null(), "{path}: {gone}");
        let document = gone["loaderId"].as_str().map(str::to_owned);
        self.wait(path, async || {
            let shown = self.document().await;
            (shown == document && self.is_ready().await).then_some(())
        })
        .await;
    }

    /// The current document's id, which changes with every navigation.
    pub(super) async fn document(&self) -> Option<String> {
        let tree = self.try_call("Page.getFrameTree", json!({})).await.ok()?;
        let document = tree["frameTree"]["frame"]["loaderId"].as_str()?;
        Some(document.to_owned())
    }

    pub(super) async fn is_ready(&self) -> bool {
        self.try_run(IS_READY)
            .await
            .is_ok_and(|ready| ready == true)
    }

    /// Evaluates an expression of the page's script.
    pub(crate) async fn run(&self, script: &str) -> Value {
        let ran = self.try_run(script).await;
        ran.unwrap_or_else(|error| panic!("{error} in {script:.200}"))
    }

    pub(crate) async fn try_run(&self, script: &str) -> Result<Value, String> {
        let evaluated = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let answer = self.try_call("Runtime.evaluate", evaluated).await?;
        match answer["exceptionDetails"]["exception"]["description"].as_str() {
            Some(thrown) => Err(thrown.to_owned()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// The visible text of the page.
    pub(crate) async fn text(&self) -> String {
        let text = self.try_run("document.body?.innerText ?? ''").await;
        text.ok()
            .and_then(|text| text.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// The current address, without its host.
    pub(crate) async fn path(&self) -> String {
        let path = self.run("location.pathname + location.search").await;
        path.as_str().unwrap().to_owned()
    }

    /// Waits until an expression of the page's script is true.
    pub(crate) async fn until(&self, what: &str, script: &str) {
        self.wait(what, async || {
            let truth = self.try_run(script).await.ok()?;
            (truth == true).then_some(())
        })
        .await;
    }

    /// Waits until a text is visible.
    pub(crate) async fn sees(&self, text: &str) {
        let what = format!("«{text}»");
        self.wait(&what, async || {
            self.text().await.contains(text).then_some(())
        })
        .await;
    }

    /// Waits until a text is no longer visible.
    pub(crate) async fn sees_no(&self, text: &str) {
        let what = format!("no «{text}»");
        self.wait(&what, async || {
            let is_ready = self.is_ready().await;
            (is_ready && !self.text().await.contains(text)).then_some(())
        })
        .await;
    }

    /// Waits until `probe` returns something, or fails with what the page shows instead.
    pub(crate) async fn wait<T>(&self, what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
        let waiting = eventually_within(TIMEOUT * 2, what, probe);
        if let Ok(found) = tokio::time::timeout(TIMEOUT, waiting).await {
            return found;
        }
        panic!(
            "waited in vain for {what} at {}, which shows:\n{}\non its console: {:?}",
            self.path().await,
            self.text().await,
            self.has_said(),
        )
    }

    /// A button by its accessible name.
    pub(crate) fn button(&self, name: &str) -> Found<'_> {
        Found::named(self, &["button"], name)
    }

    /// A link by its text.
    pub(crate) fn link(&self, name: &str) -> Found<'_> {
        Found::named(self, &["link"], name)
    }

    /// An input element by its label.
    pub(crate) fn field(&self, name: &str) -> Found<'_> {
        Found::named(self, FIELDS, name)
    }

    /// A disclosure widget by its heading.
    pub(crate) fn summary(&self, name: &str) -> Found<'_> {
        Found::named(self, &["DisclosureTriangle"], name)
    }

    /// The first element that a selector matches.
    pub(crate) fn at(&self, selector: &str) -> Found<'_> {
        Found::selected(self, selector)
    }

    /// A screenshot of the window, as the bytes of a file.
    pub(crate) async fn picture(&self, format: Value) -> Vec<u8> {
        use base64::Engine as _;
        let taken = self.call("Page.captureScreenshot", format).await;
        let engine = base64::engine::general_purpose::STANDARD;
        engine.decode(taken["data"].as_str().unwrap()).unwrap()
    }

    /// Allows a console message that a test causes on purpose.
    pub(crate) fn may_say(&self, what: &str) {
        self.allowed.lock().unwrap().push(what.to_owned());
    }

    /// Console messages since the last call: from scripts, the network and the security policy.
    pub(crate) fn has_said(&self) -> Vec<String> {
        let events = self.wire.take_events(&self.session).into_iter();
        let allowed = self.allowed.lock().unwrap();
        let is_allowed = |said: &String| allowed.iter().any(|allowed| said.contains(allowed));
        let said = events.filter_map(|event| said(&event));
        said.filter(|said| !is_allowed(said)).collect()
    }

    pub(super) async fn has_a_quiet_console(&self) {
        // Earlier messages have arrived by the time of this response.
        let _ = self.try_run("0").await;
        assert_eq!(self.has_said(), Vec::<String>::new(), "on the console");
    }
}

fn said(Event { method, params, .. }: &Event) -> Option<String> {
    match method.as_str() {
        "Runtime.consoleAPICalled" => Some(params["args"].to_string()),
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Log.entryAdded" => {
            let entry = &params["entry"];
            let text = entry["text"].as_str().unwrap_or_default();
            Some(format!("{}: {text} {}", entry["level"], entry["url"]))
        }
        _ => None,
    }
}
