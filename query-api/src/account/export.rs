//! `GET /auth/export`: all data kept about a person, as one JSON file for that person.

use std::io;
use std::time::Duration;

use access::Person;
use axum::extract::State as AppState;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemas::{AccountId, Log};
use service::outflow::{AtKeyEnd, StreamLimits, outflow};
use service::{HttpError, Share, Shares};
use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::gather::Gathering;
use super::json_object::JsonObjectWriter;
use crate::progress::Projection;
use crate::reading::PersonalReading;
use crate::state::State;

/// Concurrent exports in one process.
const AT_ONCE: usize = 4;
/// Seconds after which a person who found no free place may try again.
const TRY_AGAIN: u64 = 5;
/// How long the export waits for its reader.
const STALL: Duration = Duration::from_mins(1);
const LEAST_RATE: u32 = 4_096;
const DEADLINE: Duration = Duration::from_hours(1);

/// The places for such exports, one per person.
#[derive(Clone)]
pub(crate) struct OwnExports(Shares<AccountId>);

impl Default for OwnExports {
    fn default() -> Self {
        Self(Shares::new(AT_ONCE))
    }
}

impl OwnExports {
    fn enter(&self, account: AccountId) -> Result<Share<AccountId>, HttpError> {
        let place = (self.0.held_by(&account) == 0).then(|| self.0.try_enter(&account));
        place.flatten().ok_or_else(|| {
            let error = "another export is in progress: try again in a few seconds";
            HttpError::unavailable(error).with_header(header::RETRY_AFTER, TRY_AGAIN.into())
        })
    }
}

pub(super) async fn export_account(
    reading: PersonalReading,
    AppState(state): AppState<State>,
) -> Result<Response, HttpError> {
    let needed = [
        Projection::Accounts,
        Projection::Circles,
        Projection::Crossings,
        Projection::Organizations,
        Projection::Positions,
        Projection::SosCalls,
    ];
    let models = reading.models(&needed).await?.clone();
    catch_up(&state, &needed).await;
    let person = reading.person().clone();
    let place = state.own_exports.enter(person.account_id)?;
    let date = state.clock.now().format("%Y-%m-%d").to_string();
    let pieces = gathered(&state, models, &person, place).await?;
    let limits = StreamLimits {
        kind: "own export",
        stall: STALL,
        least_rate: LEAST_RATE,
        deadline: Some(Instant::now() + DEADLINE),
    };
    let ended = state.access.token_ended(&person);
    let body = outflow(pieces, limits, ended, AtKeyEnd::BreakOff);
    let file = format!("attachment; filename=\"waypost-account-{date}.json\"");
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_DISPOSITION, file),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, body).into_response())
}

/// Waits a while for the person's most recent changes. If the read models lag far behind, the file
/// contains their current state.
async fn catch_up(state: &State, needed: &[Projection]) {
    for log in [Log::Events, Log::Locations] {
        let Ok(end) = state.log.end(log).await else {
            return;
        };
        let waiting = state.progress.wait_for(end, needed, state.position_wait);
        // The file's own contents show it.
        let _ = waiting.await;
    }
}

type Pieces = ReceiverStream<io::Result<bytes::Bytes>>;

/// Returns the file in pieces. Its beginning is read before the response starts, so that an account
/// that cannot be read causes an error instead of a broken file.
async fn gathered(
    state: &State,
    models: PgPool,
    person: &Person,
    place: Share<AccountId>,
) -> Result<Pieces, HttpError> {
    let (pieces, taken) = mpsc::channel(1);
    let gathering = Gathering::open(&state.log, models, person.account_id).await?;
    let organizations = state.access.organizations_of(person.account_id);
    background::spawn(async move {
        let _place = place;
        let mut object = JsonObjectWriter::new(pieces.clone());
        let written = tokio::select! {
            () = pieces.closed() => return,
            written = gathering.write(&mut object, &organizations) => written,
        };
        if let Err(error) = written {
            tracing::warn!(%error, "An export of an account was cut off");
            // The client may have disconnected in the meantime.
            let _ = pieces.send(Err(error)).await;
        }
    });
    Ok(ReceiverStream::new(taken))
}
