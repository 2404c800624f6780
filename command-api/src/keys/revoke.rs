//! `DELETE /api/v1/keys/{keyId}`: revokes an API key, with `?given=true` also all keys that it
//! created.

use std::collections::{HashMap, HashSet};

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use domain::key;
use event_log::EventLog;
use schemas::key::Giver;
use schemas::{AggregateType, Event, KeyId, Log, OrgId, Recorded, StreamId};
use service::HttpError;

use crate::commands::{Decision, Past};
use crate::{App, CommandError, Commands, Done, LogError, NotFound, Origin, answer};

/// Events of keys read at a time.
const PAGE: usize = 1_000;

/// What a revocation includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Keys that the key created continue to work.
    Stays,
    /// All keys that the key created, directly or indirectly, end too.
    Ends,
}

/// Revokes a key. One that no longer works counts as not found, unless a key that it created has to
/// end with it.
pub async fn revoke(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    key_id: &KeyId,
    given: Given,
) -> Result<Done<()>, CommandError<NotFound>> {
    // The key itself first: from then on it creates no more keys.
    let revoked = revoke_one(commands, origin, org, key_id).await;
    match (given, revoked) {
        (Given::Stays, revoked) => revoked,
        (Given::Ends, Ok(done)) => {
            let last = revoke_given(commands, origin, org, key_id).await?;
            Ok(last.unwrap_or(done))
        }
        (Given::Ends, Err(CommandError::Refused(nothing))) => {
            let last = revoke_given(commands, origin, org, key_id).await?;
            last.ok_or(CommandError::Refused(nothing))
        }
        (Given::Ends, error) => error,
    }
}

async fn revoke_one(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    key_id: &KeyId,
) -> Result<Done<()>, CommandError<NotFound>> {
    let stream = StreamId::new(org, AggregateType::Key, key_id.as_str());
    let revoked = commands.execute(origin, &stream, Past::Last, |past, _| {
        let last = past.last().map(|recorded| &recorded.event);
        let event = key::revoke(key_id.clone(), last).ok_or(NotFound("key"))?;
        Ok(Decision::new((), Some(event)))
    });
    revoked.await
}

/// Revokes the keys that a key created until none is left: one of them may have created another
/// while the rest were being revoked.
async fn revoke_given(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    key_id: &KeyId,
) -> Result<Option<Done<()>>, CommandError<NotFound>> {
    let mut last = None;
    loop {
        let left = Family::read(commands.log(), org).await?.left_of(key_id);
        if left.is_empty() {
            return Ok(last);
        }
        for key_id in &left {
            match revoke_one(commands, origin, org, key_id).await {
                Ok(done) => last = Some(done),
                // Another process was faster.
                Err(CommandError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Which key created which, as recorded in the log, including those that no longer work.
#[derive(Default)]
struct Family {
    given: HashMap<KeyId, Vec<KeyId>>,
    revoked: HashSet<KeyId>,
}

impl Family {
    async fn read(log: &EventLog, org: &OrgId) -> Result<Self, LogError> {
        let mut family = Self::default();
        let (mut after, mut complete) = (0, false);
        while !complete {
            let kind = Some(AggregateType::Key);
            let page = log.page(Log::Events, org, kind, after, PAGE).await?;
            page.events().for_each(|recorded| family.take_in(recorded));
            (after, complete) = (page.through, page.complete);
        }
        Ok(family)
    }

    fn take_in(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::KeyCreated(created) => {
                if let Giver::Key(giver) = &created.created_by {
                    let given = self.given.entry(giver.clone()).or_default();
                    given.push(created.key_id.clone());
                }
            }
            Event::KeyRevoked(revoked) => {
                self.revoked.insert(revoked.key_id.clone());
            }
            _ => {}
        }
    }

    /// Keys that descend from a key and have not been revoked, the nearest first.
    fn left_of(mut self, key_id: &KeyId) -> Vec<KeyId> {
        let mut all = self.given.remove(key_id).unwrap_or_default();
        let mut nth = 0;
        while let Some(next) = all.get(nth) {
            // Taken out, so that the walk ends even if keys in the log created each other.
            all.extend(self.given.remove(next).unwrap_or_default());
            nth += 1;
        }
        all.retain(|key_id| !self.revoked.contains(key_id));
        all
    }
}

/// Reads `?given=true`.
pub(crate) fn given(uri: &Uri) -> Result<Given, HttpError> {
    let mut asked = uri.query().unwrap_or_default().split('&');
    match asked.find_map(|parameter| parameter.strip_prefix("given=")) {
        None | Some("false") => Ok(Given::Stays),
        Some("true") => Ok(Given::Ends),
        Some(_) => Err(HttpError::bad_request("given: must be true or false")),
    }
}

pub(super) async fn revoke_key(
    caller: Authorized<scope::ManageKeys>,
    State(app): State<App>,
    Path(id): Path<KeyId>,
    uri: Uri,
    origin: Origin,
) -> Result<Response, HttpError> {
    let given = given(&uri)?;
    let done = revoke(&app.commands, &origin, &caller.org, &id, given).await?;
    Ok(answer::no_content(&done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_stems_from_a_key_is_found_and_nothing_else() {
        let id = KeyId::from;
        let mut family = Family::default();
        for (giver, gifts) in [("a", ["b", "c"]), ("b", ["d", "e"]), ("x", ["y", "z"])] {
            family.given.insert(id(giver), gifts.map(id).to_vec());
        }
        family.revoked.insert(id("b"));
        assert_eq!(family.left_of(&id("a")), ["c", "d", "e"].map(id));
    }

    #[test]
    fn a_circle_of_givers_ends_the_walk() {
        let id = KeyId::from;
        let mut family = Family::default();
        family.given.insert(id("a"), vec![id("b")]);
        family.given.insert(id("b"), vec![id("a")]);
        assert_eq!(family.left_of(&id("a")), ["b", "a"].map(id));
    }
}
