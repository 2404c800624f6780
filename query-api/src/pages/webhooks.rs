//! `GET /dashboard/webhooks`, `GET /dashboard/webhooks/{id}`: endpoints and what was sent to them.

use axum::http::Uri;
use axum::response::Response;
use minijinja::context;
use service::HttpError;

use super::frame::shown;
use super::visit::{Instead, Visit};
use crate::paging::{Page as Part, Parameters};
use crate::progress::Projection;
use crate::reading::ResourceId;
use crate::webhooks::{find_deliveries, find_webhook, find_webhooks, no_webhook};

pub(super) async fn list_webhooks(visit: Visit, uri: Uri) -> Result<Response, Instead> {
    let part = Part::asked_for(&Parameters::of(&uri)?)?;
    let models = visit.models(&[Projection::Webhooks]).await?;
    let mut webhooks = find_webhooks(visit.org(), &part, models).await?;
    let next = part.next_link(&uri, &mut webhooks);
    let page = visit.page("webhooks.html", "Webhooks", "webhooks").await?;
    let webhooks = shown(&webhooks);
    Ok(page.show(context! { webhooks => webhooks, next => next })?)
}

pub(super) async fn show_webhook(
    visit: Visit,
    ResourceId(id): ResourceId,
    uri: Uri,
) -> Result<Response, Instead> {
    let part = Part::asked_for(&Parameters::of(&uri)?)?;
    let read_from = [Projection::Webhooks, Projection::Deliveries];
    let models = visit.models(&read_from).await?;
    let webhook = find_webhook(visit.org(), &id, models).await?;
    let webhook = webhook.ok_or_else(no_webhook)?;
    let mut deliveries = find_deliveries(visit.org(), &id, &part, models).await?;
    let next = part.next_link(&uri, &mut deliveries);
    // Attempts are kept as JSON text, which only a JSON reader understands.
    let deliveries = serde_json::to_value(&deliveries).map_err(HttpError::internal)?;
    let page = visit.page("webhook.html", "Webhook", "webhooks").await?;
    Ok(page.show(context! {
        webhook => shown(&webhook),
        deliveries => shown(&deliveries),
        next => next,
    })?)
}
