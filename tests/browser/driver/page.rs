//! A page, and what a person does on it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{Owner, eventually_within};
use serde_json::{Value, json};

use super::found::Found;
use super::wire::{Event, Wire};

/// Whether the page is read as a person would: all there, and all scripts have begun.
const IS_READY: &str = "document.readyState === 'complete'";

/// How long anything may take to show, on a machine that builds at the same time.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// Roles of what a person writes or chooses in.
const FIELDS: &[&str] = &["textbox", "searchbox", "combobox", "spinbutton", "checkbox"];

/// A page of the browser.
#[derive(Clone)]
pub(crate) struct Page {
    wire: Arc<Wire>,
    session: String,
    context: String,
    base: String,
    /// What the console may say because the test does something wrong on purpose.
    allowed: Arc<Mutex<Vec<String>>>,
}

/// Colours that a person may prefer.
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

    /// Looks at the page in a window of this width.
    pub(crate) async fn is_wide(&self, width: u32) {
        self.has_size(width, 900).await;
    }

    /// Looks at the page in a window of this size.
    pub(crate) async fn has_size(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Prefers these colours.
    pub(crate) async fn prefers(&self, scheme: Scheme) {
        let value = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let feature = json!([{"name": "prefers-color-scheme", "value": value}]);
        let media = json!({"features": feature});
        self.call("Emulation.setEmulatedMedia", media).await;
    }

    /// Runs no scripts of pages from now on.
    pub(crate) async fn without_scripts(&self) {
        let off = json!({"value": true});
        self.call("Emulation.setScriptExecutionDisabled", off).await;
    }

    /// Runs a script before those of every page that is opened from now on.
    pub(crate) async fn begins_with(&self, script: &str) {
        self.call("Page.enable", json!({})).await;
        let source = json!({"source": script});
        self.call("Page.addScriptToEvaluateOnNewDocument", source)
            .await;
    }

    /// Is there, and lets pages know.
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

    /// Puts what is downloaded into a folder.
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

    /// Has the session of somebody who has signed in elsewhere.
    pub(crate) async fn is_of(&self, owner: &Owner) {
        let (name, value) = owner.cookie.split_once('=').unwrap();
        self.has_cookie(name, value).await;
    }

    pub(crate) async fn has_cookie(&self, name: &str, value: &str) {
        let url = format!("{}/dashboard", self.base);
        let cookie = json!({"name": name, "value": value, "url": url, "path": "/dashboard"});
        self.call("Network.setCookie", cookie).await;
    }

    /// Goes to an address of the system and waits until the page is all there.
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

    /// Which document is shown: another one after every navigation.
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

    /// What an expression of the page's script comes to.
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

    /// The text that can be read on the page.
    pub(crate) async fn text(&self) -> String {
        let text = self.try_run("document.body?.innerText ?? ''").await;
        text.ok()
            .and_then(|text| text.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// The address that is shown, without its host.
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

    /// Waits until a text can be read.
    pub(crate) async fn sees(&self, text: &str) {
        let what = format!("«{text}»");
        self.wait(&what, async || {
            self.text().await.contains(text).then_some(())
        })
        .await;
    }

    /// Waits until a text can no longer be read.
    pub(crate) async fn sees_no(&self, text: &str) {
        let what = format!("no «{text}»");
        self.wait(&what, async || {
            let is_ready = self.is_ready().await;
            (is_ready && !self.text().await.contains(text)).then_some(())
        })
        .await;
    }

    /// Waits until `probe` gives something, or fails with what the page shows instead.
    pub(crate) async fn wait<T>(&self, what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
        let waiting = eventually_within(PATIENCE * 2, what, probe);
        if let Ok(found) = tokio::time::timeout(PATIENCE, waiting).await {
            return found;
        }
        panic!(
            "waited in vain for {what} at {}, which shows:\n{}\non its console: {:?}",
            self.path().await,
            self.text().await,
            self.has_said(),
        )
    }

    /// A button by what it is called for those who hear the page.
    pub(crate) fn button(&self, name: &str) -> Found<'_> {
        Found::named(self, &["button"], name)
    }

    /// A link by its text.
    pub(crate) fn link(&self, name: &str) -> Found<'_> {
        Found::named(self, &["link"], name)
    }

    /// What is written or chosen in, by its label.
    pub(crate) fn field(&self, name: &str) -> Found<'_> {
        Found::named(self, FIELDS, name)
    }

    /// What opens and closes, by its heading.
    pub(crate) fn summary(&self, name: &str) -> Found<'_> {
        Found::named(self, &["DisclosureTriangle"], name)
    }

    /// Whatever a selector finds first.
    pub(crate) fn at(&self, selector: &str) -> Found<'_> {
        Found::selected(self, selector)
    }

    /// A picture of what the window shows, as the bytes of a file.
    pub(crate) async fn picture(&self, format: Value) -> Vec<u8> {
        use base64::Engine as _;
        let taken = self.call("Page.captureScreenshot", format).await;
        let engine = base64::engine::general_purpose::STANDARD;
        engine.decode(taken["data"].as_str().unwrap()).unwrap()
    }

    /// Lets the console say something that a test brings about on purpose.
    pub(crate) fn may_say(&self, what: &str) {
        self.allowed.lock().unwrap().push(what.to_owned());
    }

    /// What the console has said since it was last asked: of scripts, of the network, and of the
    /// security policy.
    pub(crate) fn has_said(&self) -> Vec<String> {
        let events = self.wire.take_events(&self.session).into_iter();
        let allowed = self.allowed.lock().unwrap();
        let is_allowed = |said: &String| allowed.iter().any(|allowed| said.contains(allowed));
        let said = events.filter_map(|event| said(&event));
        said.filter(|said| !is_allowed(said)).collect()
    }

    pub(super) async fn has_a_quiet_console(&self) {
        // What was said before this answer has arrived with it.
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
