//! Unseals personal data on its way into a table.

use event_log::{Binding, EventLog, VaultError};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use schemas::{Event, Recorded, Sealed};
use serde::de::DeserializeOwned;

use super::{ApplyError, bigint};

/// The number of owners whose keys are fetched in parallel.
const SIDE_BY_SIDE: usize = 64;

/// A sealed value that belongs to something.
pub(super) struct Unsealing<'e, T> {
    pub(super) of: T,
    pub(super) binding: Binding,
    pub(super) sealed: &'e Sealed,
}

/// Unseals values in order, leaving out those of forgotten owners.
pub(super) async fn unseal_each<'e, T: Send + 'e>(
    log: &'e EventLog,
    values: Vec<Unsealing<'e, T>>,
) -> Result<Vec<(T, String)>, ApplyError> {
    let mut unsealing = Vec::with_capacity(values.len());
    for value in values {
        unsealing.push(unseal(log, value).boxed());
    }
    let unsealed = stream::iter(unsealing).buffered(SIDE_BY_SIDE);
    let unsealed: Vec<Option<(T, String)>> = unsealed.try_collect().await?;
    Ok(unsealed.into_iter().flatten().collect())
}

async fn unseal<T>(
    log: &EventLog,
    value: Unsealing<'_, T>,
) -> Result<Option<(T, String)>, ApplyError> {
    match log.vault().unseal(&value.binding, value.sealed).await {
        Ok(text) => Ok(Some((value.of, text))),
        Err(VaultError::Forgotten) => Ok(None),
        Err(VaultError::Broken) => Err(ApplyError::Refused(
            "what is sealed in it cannot be opened".to_owned(),
        )),
        Err(error @ VaultError::Unavailable(_)) => Err(ApplyError::Vault(error)),
    }
}

/// Parses a JSON object that was sealed.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ApplyError> {
    // The error itself could quote personal data.
    serde_json::from_str(text)
        .map_err(|_| ApplyError::Refused("what is sealed in it is of another form".to_owned()))
}

/// The persons that these events forget.
pub(super) fn forgotten(events: &[&Recorded]) -> Vec<i64> {
    let forgotten = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AccountForgotten(forgotten) => Some(bigint(forgotten.account_id.0)),
        _ => None,
    });
    forgotten.collect()
}
