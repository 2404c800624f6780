//! `GET /dashboard/settings/api-manager`: the organization's API keys.

use access::Scope;
use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use domain::key::DEFAULT_RATE_LIMIT;
use minijinja::context;

use super::frame::shown;
use super::visit::{Instead, Visit};
use crate::keys::{count_keys, find_keys, find_use};
use crate::paging::{BY_TIME_AND_NAME, Listed, Parameters};
use crate::progress::Projection;
use crate::search::ShortQuery;
use crate::state::State;

pub(super) async fn show_keys(
    visit: Visit,
    AppState(state): AppState<State>,
    uri: Uri,
) -> Result<Response, Instead> {
    let query = ShortQuery::from_parameters(&Parameters::of(&uri)?, BY_TIME_AND_NAME)?;
    let models = visit.models(&[Projection::ApiKeys]).await?;
    let total = count_keys(visit.org(), &query, models).await?;
    let mut keys = find_keys(visit.org(), &query, models).await?;
    let next = query.page.next_link(&uri, &mut keys);
    let ids: Vec<_> = keys.iter().map(Listed::id).collect();
    let window = state.access.limiter().window();
    let used = find_use(&ids, window, models).await?;
    let scopes: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let page = visit.page("api_manager.html", "API keys", "keys").await?;
    Ok(page.show(context! {
        keys => shown(&keys),
        used => shown(&used),
        window => window.as_secs(),
        total => total,
        next => next,
        q => query.text,
        now => shown(state.clock.now()),
        scopes => scopes,
        default_limit => DEFAULT_RATE_LIMIT,
    })?)
}
