//! The frame of every page.

use std::sync::LazyLock;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, Value, context};
use serde::Serialize;
use service::HttpError;

use super::address::encoded;
use super::amounts::grouped;

/// Nothing from elsewhere, nothing inline, nothing in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "same-origin"),
];

macro_rules! templates {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("templates/", $name)))),+]
    };
}

const TEMPLATES: &[(&str, &str)] = templates![
    "api_manager.html",
    "app.html",
    "docs.html",
    "docs_api.html",
    "docs_index.html",
    "docs_nav.html",
    "docs_search.html",
    "document.html",
    "event.html",
    "events.html",
    "frame.html",
    "home.html",
    "invite.html",
    "map.html",
    "map_canvas.html",
    "message.html",
    "people.html",
    "record.html",
    "record_fields.html",
    "record_import.html",
    "record_new.html",
    "records.html",
    "run.html",
    "run_form.html",
    "run_rows.html",
    "runs.html",
    "sign_in.html",
    "system.html",
    "system_letters.html",
    "system_operators.html",
    "webhook.html",
    "webhook_form.html",
    "webhooks.html",
    "workflow.html",
    "workflow_editor.html",
    "workflows.html",
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.add_filter("when", when);
    environment.add_filter("took", took);
    environment.add_filter("prose", prose);
    environment.add_filter("segment", encoded);
    environment.add_filter("grouped", |number: i64| grouped(number));
    for (name, source) in TEMPLATES {
        // The first page that uses an unreadable template fails.
        if let Err(error) = environment.add_template(name, source) {
            tracing::error!(name, %error, "A template cannot be read");
        }
    }
    environment
});

/// Renders a piece that several pages share, to be inserted as it is.
pub(super) fn piece(template: &str, shown: Value) -> Result<Value, HttpError> {
    let template = ENVIRONMENT.get_template(template);
    let html = template.and_then(|template| template.render(shown));
    Ok(Value::from_safe_string(html.map_err(HttpError::internal)?))
}

/// Converts anything for a template.
pub(super) fn shown(value: impl Serialize) -> Value {
    Value::from(Serde(value))
}

/// Renders a time. The page's script converts it to the reader's own zone.
fn when(time: &str) -> Value {
    let plain = |byte: u8| byte.is_ascii_digit() || b"-:.+TZ".contains(&byte);
    match time.get(..16) {
        Some(minute) if time.bytes().all(plain) => {
            let minute = minute.replace('T', " ");
            let html = format!("<time datetime=\"{time}\">{minute} UTC</time>");
            Value::from_safe_string(html)
        }
        _ => Value::from(time),
    }
}

/// Formats a span of time in the unit that a person would choose.
fn took(seconds: f64) -> String {
    match seconds {
        ..1.0 => format!("{:.0} ms", seconds * 1_000.0),
        1.0..120.0 => format!("{seconds:.1} s"),
        120.0..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3_600.0),
    }
}

/// Renders text of the API's description for people: text in backticks is code.
fn prose(text: &str) -> Value {
    let mut html = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, code, after)) = first_code(rest) {
        let (before, code) = (HtmlEscape(before).to_string(), HtmlEscape(code).to_string());
        html.extend([before.as_str(), "<code>", code.as_str(), "</code>"]);
        rest = after;
    }
    html.push_str(&HtmlEscape(rest).to_string());
    Value::from_safe_string(html)
}

/// Splits a text into what is before, within and after the first pair of backticks.
fn first_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

/// Returns the response with a page. No copy of it is kept.
pub(super) fn answer(html: impl IntoResponse) -> Response {
    (HEADERS, [(CACHE_CONTROL, "no-store")], html).into_response()
}

/// A page being built.
pub(super) struct Page {
    pub(super) template: &'static str,
    pub(super) title: &'static str,
    /// Its place in the dashboard; empty outside of it.
    pub(super) place: &'static str,
    /// In this order, since they share their global names.
    pub(super) scripts: Vec<&'static str>,
    /// An additional style besides that of all pages.
    pub(super) style: Option<&'static str>,
    /// The only other origin that its images may come from.
    pub(super) images: Option<String>,
    /// The visitor, in the dashboard.
    pub(super) visitor: Value,
}

impl Page {
    /// Creates a page without a visitor.
    pub(super) fn open(template: &'static str, title: &'static str) -> Self {
        Self {
            template,
            title,
            place: "",
            scripts: Vec::new(),
            style: None,
            images: None,
            visitor: Value::UNDEFINED,
        }
    }

    /// Adds a script.
    pub(super) fn with_script(mut self, script: &'static str) -> Self {
        self.scripts.push(script);
        self
    }

    /// Sets a style of its own.
    pub(super) fn with_style(mut self, style: &'static str) -> Self {
        self.style = Some(style);
        self
    }

    /// Allows images from another origin.
    pub(super) fn with_images_of(mut self, origin: &str) -> Self {
        self.images = Some(origin.to_owned());
        self
    }

    /// Renders the page with its content.
    pub(super) fn show(self, shown: Value) -> Result<Response, HttpError> {
        let policy = self.images.as_ref().map(|origin| {
            let images = format!("img-src 'self' {origin};");
            HeaderValue::try_from(POLICY.replace("img-src 'self';", &images))
        });
        let policy = policy.transpose().map_err(HttpError::internal)?;
        let mut page = answer(self.render(shown).map_err(HttpError::internal)?);
        if let Some(policy) = policy {
            page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        }
        Ok(page)
    }

    pub(super) fn render(self, shown: Value) -> Result<String, minijinja::Error> {
        let content = ENVIRONMENT.get_template(self.template)?.render(shown)?;
        ENVIRONMENT.get_template("frame.html")?.render(context! {
            title => self.title,
            place => self.place,
            scripts => self.scripts,
            style => self.style,
            visitor => self.visitor,
            content => Value::from_safe_string(content),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read() {
        for (name, _) in TEMPLATES {
            assert!(ENVIRONMENT.get_template(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_time_that_is_none_is_text_like_any_other() {
        let time = when("2026-11-21T21:02:18Z").to_string();
        assert_eq!(
            time,
            "<time datetime=\"2026-11-21T21:02:18Z\">2026-11-21 21:02 UTC</time>"
        );
        assert!(!when("\"><script>alert(1)</script>").is_safe());
    }

    #[test]
    fn text_in_backticks_is_code_and_nothing_else_is_markup() {
        for (text, html) in [
            ("`a<b` and `c`.", "<code>a&lt;b</code> and <code>c</code>."),
            ("one ` alone", "one ` alone"),
            ("<b>`</b>`", "&lt;b&gt;<code>&lt;&#x2f;b&gt;</code>"),
        ] {
            let shown = prose(text);
            assert!(shown.is_safe());
            assert_eq!(shown.to_string(), html);
        }
    }

    #[test]
    fn what_is_shown_cannot_become_part_of_the_page() {
        let page = Page::open("message.html", "<b>");
        let shown = context! { heading => "<script>", text => "\"'&" };
        let html = page.render(shown).unwrap();
        assert!(
            html.contains("&lt;script&gt;") && !html.contains("<b>"),
            "{html}"
        );
    }
}
