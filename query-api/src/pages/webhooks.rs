//! `GET /dashboard/webhooks`, `GET /dashboard/webhooks/{id}`: endpoints and their deliveries.

use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use minijinja::context;
use service::HttpError;

use super::frame::{piece, shown};
use super::visit::{Instead, Visit};
use crate::paging::{BY_TIME, Page as Part, Parameters};
use crate::progress::Projection;
use crate::reading::ResourceId;
use crate::search::{ShortQuery, search_text};
use crate::state::State;
use crate::webhooks::{
    LOOKED_THROUGH, Sought, find_deliveries, find_deliveries_in, find_webhook, find_webhooks,
    no_webhook,
};

/// The statuses of deliveries.
const STATUSES: [&str; 3] = ["FAILED", "PENDING", "SUCCEEDED"];

pub(super) async fn list_webhooks(visit: Visit, uri: Uri) -> Result<Response, Instead> {
    let query = ShortQuery::from_parameters(&Parameters::of(&uri)?, BY_TIME)?;
    let models = visit.models(&[Projection::Webhooks]).await?;
    let mut webhooks = find_webhooks(visit.org(), &query, models).await?;
    let next = query.page.next_link(&uri, &mut webhooks);
    let page = visit.page("webhooks.html", "Webhooks", "webhooks").await?;
    let page = page.with_script("webhooks.js");
    let webhooks = shown(&webhooks);
    let form = piece("webhook_form.html", context! {})?;
    Ok(page.show(context! { webhooks => webhooks, next => next, form => form, q => query.text })?)
}

pub(super) async fn show_webhook(
    visit: Visit,
    AppState(state): AppState<State>,
    ResourceId(id): ResourceId,
    uri: Uri,
) -> Result<Response, Instead> {
    let parameters = Parameters::of(&uri)?;
    let part = Part::from_parameters(&parameters)?;
    let status = parameters.one("status")?.unwrap_or_default();
    if !status.is_empty() && !STATUSES.contains(&status) {
        let wanted = "status: must be FAILED, PENDING or SUCCEEDED";
        return Err(HttpError::bad_request(wanted).into());
    }
    let read_from = [Projection::Webhooks, Projection::Deliveries];
    let models = visit.models(&read_from).await?;
    let webhook = find_webhook(visit.org(), &id, models).await?;
    let webhook = webhook.ok_or_else(no_webhook)?;
    let text = search_text(&parameters)?;
    let sought = Sought::from_parameters(&parameters, &id, state.log.keyring())?;
    let mut deliveries = match sought {
        Some(sought) => sought.find(visit.org(), &id, &part, models).await?.0,
        None if status.is_empty() => find_deliveries(visit.org(), &id, &part, models).await?,
        None => find_deliveries_in(visit.org(), &id, status, &part, models).await?,
    };
    let next = part.next_link(&uri, &mut deliveries);
    // Attempts are stored as JSON text, which only a JSON parser understands.
    let deliveries = serde_json::to_value(&deliveries).map_err(HttpError::internal)?;
    let page = visit.page("webhook.html", "Webhook", "webhooks").await?;
    let page = page.with_script("webhooks.js");
    Ok(page.show(context! {
        form => piece("webhook_form.html", context! { webhook => shown(&webhook) })?,
        webhook => shown(&webhook),
        deliveries => shown(&deliveries),
        next => next,
        status => if text.is_some() { "" } else { status },
        q => text,
        statuses => STATUSES,
        looked_through => LOOKED_THROUGH,
    })?)
}
