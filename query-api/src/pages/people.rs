//! `GET /dashboard/people`: the organization's people; `GET /dashboard/invite`: where invited
//! persons accept.

use access::PeopleError;
use axum::extract::State as AppState;
use axum::response::Response;
use minijinja::context;
use service::HttpError;

use super::frame::{Page, shown};
use super::visit::{Instead, Visit};
use crate::state::State;

/// The people are read from the log: few, rarely requested, and never behind the last change.
pub(super) async fn list_people(
    visit: Visit,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    let now = state.clock.now();
    let all = access::people(&state.log, visit.org(), now).await;
    let all = all.map_err(from_log)?;
    let page = visit.page("people.html", "People", "people").await?;
    Ok(page.show(context! {
        people => shown(&all.people),
        invites => shown(&all.invites),
        own => visit.staff.person.account_id.0,
    })?)
}

fn from_log(error: PeopleError) -> HttpError {
    HttpError::unavailable("the event log does not answer; try again in a moment").with_cause(error)
}

/// The invitation is after the address' `#`, which only the page's script sees.
pub(super) async fn show_invite() -> Result<Response, Instead> {
    let page = Page::open("invite.html", "Invite").with_script("dashboard.js");
    Ok(page.show(context! {})?)
}
