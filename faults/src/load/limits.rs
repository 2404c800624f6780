//! Load on the limit of a key, at both services that count it.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::{Load, post};
use crate::notes::{Admitted, ExpectedEvent, Outcome};
use crate::world::KEY_LIMIT;
use hostile::Dice;

/// Sends with an organization's limited key until the load is over.
pub(super) async fn press(load: Arc<Load>, mut dice: Dice, nth: usize) {
    let org = &load.world.orgs[nth];
    let who = format!("key of organization {nth}");
    while !load.client.is_over() {
        let sent = Instant::now();
        let admitted = if dice.chance(50) {
            trigger(&load, &mut dice, &org.limited_key).await
        } else {
            let path = "/api/v1/workflows?limit=1";
            let answer = load
                .client
                .read(&mut dice, &org.limited_key, path, None)
                .await;
            answer.and_then(|answer| match answer.status {
                429 => Some(false),
                200 => Some(true),
                _ => None,
            })
        };
        if let Some(admitted) = admitted {
            let answered = Instant::now();
            let admitted = admitted.then_some(Admitted {
                sent,
                answered,
                cost: 1,
            });
            load.client.notes.limited(&who, KEY_LIMIT, admitted);
        }
        tokio::time::sleep(dice.millis(80..500)).await;
    }
}

async fn trigger(load: &Load, dice: &mut Dice, key: &str) -> Option<bool> {
    let body = json!({"mark": load.client.number()});
    let expected = json!({"workflowId": "plain", "triggerPayload": body});
    let expected = vec![ExpectedEvent::once("workflow.triggered", expected)];
    let path = "/api/v1/workflows/plain/trigger".to_owned();
    let command = post("trigger", key, path, body, expected);
    match load.client.command(dice, command).await {
        Outcome::Acknowledged { .. } => Some(true),
        Outcome::Refused { status: 429 } => Some(false),
        _ => None,
    }
}
