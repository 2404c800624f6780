//! `GET /dashboard/sign-in`

use axum::http::Uri;
use axum::response::Response;
use minijinja::context;

use super::frame::Page;
use super::visit::Instead;
use crate::paging::Parameters;

pub(super) async fn show_sign_in(uri: Uri) -> Result<Response, Instead> {
    let next = Parameters::of(&uri)?;
    // Only to pages of the dashboard: an address from elsewhere could lead anywhere.
    let next = next.one("next")?.filter(|next| {
        let path = next.strip_prefix("/dashboard");
        path.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let page = Page::open("sign_in.html", "Sign in").with_script("dashboard.js");
    Ok(page.show(context! { next => next.unwrap_or("/dashboard") })?)
}
