//! `GET /app`: a person's own page. It holds nothing of anybody: its script signs in and asks the
//! API as the person.

use axum::response::Response;
use minijinja::context;
use service::HttpError;

use super::frame::Page;

pub(super) async fn show_app() -> Result<Response, HttpError> {
    let page = Page::open("app.html", "Your circle")
        .with_script("dashboard.js")
        .with_script("map.js")
        .with_script("app.js")
        .with_style("app.css");
    page.show(context! {})
}
