//! Elements that a person finds on a page: by role and name as screen readers do, or by a selector.

use serde_json::{Value, json};

use super::Page;

/// An element of a page. It is looked up again for every action.
pub(crate) struct Found<'p> {
    page: &'p Page,
    by: By,
}

enum By {
    Role(&'static [&'static str], String),
    Selector(String),
}

/// Scrolls it into view, and returns its middle once nothing covers it. A live page may move
/// between this and the click: from now on a click on anything else has no effect.
const AIM: &str = r"function () {
  this.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  // Between the two lines of a link that is broken lies what it stands in.
  const { x, y, width, height } = this.getClientRects()[0] ?? this.getBoundingClientRect();
  const [left, top] = [x + width / 2, y + height / 2];
  const isMeant = (hit) => this.contains(hit) || hit?.closest?.('label')?.control === this;
  const hit = document.elementFromPoint(left, top);
  if (!hit || !isMeant(hit) || this.disabled || this.ariaDisabled === 'true') return null;
  const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
  let missed = false;
  const guard = (event) => {
    if (isMeant(event.target)) return;
    missed = true;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const kind of kinds) addEventListener(kind, guard, true);
  this.wasMissed = () => {
    for (const kind of kinds) removeEventListener(kind, guard, true);
    return missed;
  };
  return [left, top];
}";

/// Whether the click went elsewhere. If it led to another page, it did not.
const WAS_MISSED: &str = "function () { return this.wasMissed(); }";

/// Chooses an option by its text, as a person does.
const CHOOSE: &str = r"function (text) {
  const option = [...this.options].find((one) => one.label.trim() === text);
  if (!option) return false;
  this.value = option.value;
  for (const kind of ['input', 'change']) this.dispatchEvent(new Event(kind, { bubbles: true }));
  return true;
}";

impl<'p> Found<'p> {
    pub(super) fn named(page: &'p Page, roles: &'static [&'static str], name: &str) -> Self {
        let by = By::Role(roles, name.to_owned());
        Self { page, by }
    }

    pub(super) fn selected(page: &'p Page, selector: &str) -> Self {
        let by = By::Selector(selector.to_owned());
        Self { page, by }
    }

    fn said(&self) -> String {
        match &self.by {
            By::Role(roles, name) => format!("{} {name}", roles[0]),
            By::Selector(selector) => selector.clone(),
        }
    }

    /// Its handle in the browser, once it is there.
    async fn look(&self) -> Option<String> {
        if !self.page.is_ready().await {
            return None;
        }
        match &self.by {
            By::Selector(selector) => {
                let query = format!("document.querySelector({})", json!(selector));
                self.handle_of(&query).await
            }
            By::Role(roles, name) => self.look_by_role(roles, name).await,
        }
    }

    async fn handle_of(&self, script: &str) -> Option<String> {
        let evaluated = json!({"expression": script});
        let answer = self
            .page
            .try_call("Runtime.evaluate", evaluated)
            .await
            .ok()?;
        Some(answer["result"]["objectId"].as_str()?.to_owned())
    }

    /// The first with this name, otherwise one whose name begins with it.
    async fn look_by_role(&self, roles: &[&str], wanted: &str) -> Option<String> {
        let document = self.handle_of("document").await?;
        let mut begins = None;
        for role in roles {
            let query = json!({"objectId": document, "role": role});
            let found = self
                .page
                .try_call("Accessibility.queryAXTree", query)
                .await
                .ok()?;
            for node in found["nodes"]
                .as_array()?
                .iter()
                .filter(|node| node["ignored"] != true)
            {
                let name = node["name"]["value"].as_str().unwrap_or_default();
                if name == wanted {
                    return self.handle_at(&node["backendDOMNodeId"]).await;
                }
                if begins.is_none() && name.starts_with(wanted) {
                    begins = Some(node["backendDOMNodeId"].clone());
                }
            }
        }
        self.handle_at(&begins?).await
    }

    async fn handle_at(&self, node: &Value) -> Option<String> {
        let node = json!({"backendNodeId": node});
        let resolved = self.page.try_call("DOM.resolveNode", node).await.ok()?;
        Some(resolved["object"]["objectId"].as_str()?.to_owned())
    }

    /// Returns a function's result on it, once it is there and the result is not null or false.
    async fn ask(&self, function: &str, arguments: Value) -> Value {
        self.page
            .wait(&self.said(), async || {
                let handle = self.look().await?;
                self.of(&handle, function, &arguments).await
            })
            .await
    }

    /// Returns the result of a function, unless it is null or false.
    async fn of(&self, handle: &str, function: &str, arguments: &Value) -> Option<Value> {
        let call = json!({
            "objectId": handle, "functionDeclaration": function,
            "arguments": arguments, "returnByValue": true,
        });
        let answer = self.page.try_call("Runtime.callFunctionOn", call).await;
        let value = answer.ok()?["result"]["value"].take();
        (!value.is_null() && value != false).then_some(value)
    }

    /// Clicks it with the mouse, and again if it has moved away.
    pub(crate) async fn click(&self) {
        self.page
            .wait(&self.said(), async || {
                let handle = self.look().await?;
                let middle = self.of(&handle, AIM, &json!([])).await?;
                self.press(&middle).await;
                let missed = self.of(&handle, WAS_MISSED, &json!([])).await;
                missed.is_none().then_some(())
            })
            .await;
    }

    async fn press(&self, middle: &Value) {
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({
                "type": kind, "x": middle[0], "y": middle[1],
                "button": button, "buttons": buttons, "clickCount": 1,
            });
            self.page.call("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Clicks it and waits until the page that it leads to is loaded.
    pub(crate) async fn follow(&self) {
        let before = self.page.document().await;
        self.click().await;
        let what = format!("the page behind {}", self.said());
        self.page
            .wait(&what, async || {
                let now = self.page.document().await;
                (now.is_some() && now != before && self.page.is_ready().await).then_some(())
            })
            .await;
    }

    /// Replaces its text.
    pub(crate) async fn write(&self, text: &str) {
        self.page
            .wait(&self.said(), async || {
                self.click().await;
                let handle = self.look().await?;
                let select = "function () { this.focus(); this.select(); return true; }";
                self.of(&handle, select, &json!([])).await?;
                let inserted = json!({"text": text});
                self.page.call("Input.insertText", inserted).await;
                // A page that was redrawn meanwhile has lost the focus, and the text with it.
                let written = "function (text) { return this.isConnected && this.value === text; }";
                let written = self.of(&handle, written, &json!([{"value": text}])).await;
                written.map(drop)
            })
            .await;
    }

    /// Chooses an option.
    pub(crate) async fn choose(&self, text: &str) {
        self.ask(CHOOSE, json!([{"value": text}])).await;
    }

    /// Selects a file for it.
    pub(crate) async fn take_file(&self, file: &std::path::Path) {
        self.ask("function () { return !this.disabled; }", json!([]))
            .await;
        let handle = self.look().await.unwrap();
        let files = json!({"files": [file], "objectId": handle});
        self.page.call("DOM.setFileInputFiles", files).await;
    }

    /// Its text, once there is any.
    pub(crate) async fn text(&self) -> String {
        let text = self
            .ask(
                "function () { return this.value ?? this.innerText; }",
                json!([]),
            )
            .await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until it is there and visible.
    pub(crate) async fn is_there(&self) {
        self.ask("function () { return this.checkVisibility(); }", json!([]))
            .await;
    }
}
