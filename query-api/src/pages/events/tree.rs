//! Causes and consequences: events as a tree, and the deliveries of each.

use std::collections::{BTreeMap, HashMap, HashSet};

use minijinja::{Value, context};
use schemas::{EventId, WebhookId};
use serde_json::Value as Json;
use service::HttpError;

use super::super::visit::Visit;
use crate::progress::Projection;
use crate::state::State;

/// Maximum number of endpoints whose deliveries are searched, and of deliveries.
const ENDPOINTS: i64 = 20;
const DELIVERIES: usize = 2_000;
/// Deeper than this, everything is on one level.
const DEEPEST: usize = 12;

/// A delivery of an event.
pub(super) struct Delivery {
    webhook_id: String,
    url: String,
    status: String,
}

/// Returns the deliveries of events, by the events' ids. A delivery's id follows from its endpoint
/// and its event, so that each is found by its key, however many there are.
pub(super) async fn deliveries_of(
    visit: &Visit,
    state: &State,
    events: &[Json],
) -> Result<HashMap<String, Vec<Delivery>>, HttpError> {
    let models = visit.models(&[Projection::Webhooks, Projection::Deliveries]);
    let models = models.await?;
    let org = visit.org().as_str();
    let endpoints = sqlx::query!(
        "SELECT webhook_id, url FROM webhooks WHERE org_id = $1 ORDER BY webhook_id LIMIT $2",
        org,
        ENDPOINTS,
    );
    let endpoints = endpoints.fetch_all(models).await?;
    let mut wanted = BTreeMap::new();
    for endpoint in &endpoints {
        let webhook = WebhookId::from(endpoint.webhook_id.clone());
        for event in events {
            let Some(event) = event["id"].as_str() else {
                continue;
            };
            let Ok(id) = event.parse::<uuid::Uuid>() else {
                continue;
            };
            let delivery = state.log.keyring().delivery_id(&webhook, EventId(id));
            wanted.insert(delivery.to_string(), (event.to_owned(), endpoint));
            if wanted.len() >= DELIVERIES {
                break;
            }
        }
    }
    let ids: Vec<String> = wanted.keys().cloned().collect();
    let found = sqlx::query!(
        "SELECT delivery_id, status FROM deliveries WHERE org_id = $1 AND delivery_id = ANY($2)",
        org,
        &ids,
    );
    let mut deliveries: HashMap<String, Vec<Delivery>> = HashMap::new();
    for row in found.fetch_all(models).await? {
        if let Some((event, endpoint)) = wanted.remove(&row.delivery_id) {
            deliveries.entry(event).or_default().push(Delivery {
                webhook_id: endpoint.webhook_id.clone(),
                url: endpoint.url.clone(),
                status: row.status,
            });
        }
    }
    Ok(deliveries)
}

/// Returns events as the lines of a tree: each below its cause. The roots came from outside, or
/// their cause is further away than was searched.
pub(super) fn tree(events: &[Json], deliveries: &HashMap<String, Vec<Delivery>>) -> Vec<Value> {
    let known: HashSet<&str> = events.iter().filter_map(id).collect();
    let mut below: HashMap<&str, Vec<&Json>> = HashMap::new();
    let mut roots = Vec::new();
    for event in events {
        let cause = event["causationId"].as_str();
        match cause.filter(|cause| known.contains(cause) && Some(*cause) != id(event)) {
            Some(cause) => below.entry(cause).or_default().push(event),
            None => roots.push(event),
        }
    }
    // Depth first, without recursion: a chain may be as long as the page searches.
    let mut lines = Vec::with_capacity(events.len());
    let mut open: Vec<(usize, &Json)> = roots.into_iter().rev().map(|root| (0, root)).collect();
    while let Some((depth, event)) = open.pop() {
        let id = id(event).unwrap_or_default();
        let sent = deliveries.get(id).into_iter().flatten();
        let sent = sent.map(|one| {
            context! { webhook_id => &one.webhook_id, url => &one.url, status => &one.status }
        });
        lines.push(context! {
            depth => depth.min(DEEPEST),
            id => id,
            position => event["position"].as_str(),
            kind => event["type"].as_str(),
            subject => event["subject"].as_str(),
            time => event["time"].as_str(),
            deliveries => sent.collect::<Vec<_>>(),
        });
        let children = below.remove(id).unwrap_or_default().into_iter().rev();
        open.extend(children.map(|child| (depth + 1, child)));
    }
    lines
}

fn id(event: &Json) -> Option<&str> {
    event["id"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_event_is_shown_below_the_one_that_caused_it() {
        let event = |id: &str, cause: Option<&str>| json!({"id": id, "causationId": cause});
        let events = [
            event("a", Some("far away")),
            event("b", Some("a")),
            event("c", Some("a")),
            event("d", Some("b")),
            event("e", Some("e")),
        ];
        let lines = tree(&events, &HashMap::new());
        let line = |line: &Value| {
            let (id, depth) = (
                line.get_attr("id").unwrap(),
                line.get_attr("depth").unwrap(),
            );
            format!("{id}{depth}")
        };
        let lines: Vec<_> = lines.iter().map(line).collect();
        assert_eq!(lines, ["a0", "b1", "d2", "c1", "e0"]);
    }
}
