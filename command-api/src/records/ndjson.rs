//! `POST /api/v1/records/{kind}` with `application/x-ndjson`: a stream of records in, a line of
//! answer for each out, as they are confirmed. Neither side is ever held in memory as a whole.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use service::HttpError;
use tokio::sync::mpsc;

use super::answers::{Answers, Sender};
use super::lines::{BrokenOff, Lines};
use crate::LogError;
use crate::answer::{POSITION, position_value};

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Answers are held back up to this size while lines keep coming, so that a request of moderate
/// size learns its position by the head of the answer.
const HELD_BYTES: usize = 1024 * 1024;
/// A pause after which the sender is taken to wait for answers.
const PAUSE: Duration = Duration::from_millis(50);
/// Chunks of answers that wait for a client which sends all before it reads.
const WAITING_CHUNKS: usize = 256;
/// A client that neither reads nor goes away is given up after this time.
const STALLED: Duration = Duration::from_mins(1);

/// Why an answer ends before its request: the connection is broken off, so that no client takes
/// the part for the whole.
#[derive(Debug, thiserror::Error)]
enum CutShort {
    #[error(transparent)]
    Request(#[from] BrokenOff),
    #[error("the event log failed: {0}")]
    Log(LogError),
}

/// Writes the lines of a body and answers each.
pub(super) async fn write_lines(sender: Sender, body: Body) -> Result<Response, HttpError> {
    let mut lines = Lines::new(body.into_data_stream());
    let mut held = Answers::default();
    loop {
        let chunk = lines.next_chunk(Some(PAUSE)).await;
        let chunk = chunk.map_err(|error| HttpError::bad_request(error.to_string()))?;
        let (ended, paused) = (chunk.ended, chunk.lines.is_empty());
        match sender.write(chunk.lines, &mut held).await {
            Err(error) if !held.confirmed => return Err(error.into()),
            Err(error) => return Ok(broken_off(held, CutShort::Log(error))),
            Ok(()) if ended => return Ok(whole(held)),
            Ok(()) if paused || held.bytes.len() >= HELD_BYTES => break,
            Ok(()) => {}
        }
    }
    let (answers, waiting) = mpsc::channel(WAITING_CHUNKS);
    tokio::spawn(go_on(sender, lines, answers));
    let rest = stream::unfold(waiting, async |mut waiting| {
        Some((waiting.recv().await?, waiting))
    });
    let first = stream::iter([Ok(Bytes::from(held.bytes))]);
    Ok(streamed(Body::from_stream(first.chain(rest))))
}

/// Answers the rest, whether the client reads along or only afterwards.
async fn go_on(sender: Sender, mut lines: Lines, answers: mpsc::Sender<Result<Bytes, CutShort>>) {
    loop {
        let chunk = match lines.next_chunk(None).await {
            Ok(chunk) => chunk,
            Err(error) => {
                return pass_on(&answers, Err(error.into()))
                    .await
                    .unwrap_or_default();
            }
        };
        let ended = chunk.ended;
        let mut some = Answers::default();
        let written = sender.write(chunk.lines, &mut some).await;
        if pass_on(&answers, Ok(some.bytes.into())).await.is_none() {
            return;
        }
        if let Err(error) = written {
            tracing::warn!(%error, "A stream of records was broken off");
            return pass_on(&answers, Err(CutShort::Log(error)))
                .await
                .unwrap_or_default();
        }
        if ended {
            return;
        }
    }
}

/// Gives answers to the connection; `None` where there is no use in going on.
async fn pass_on(
    answers: &mpsc::Sender<Result<Bytes, CutShort>>,
    some: Result<Bytes, CutShort>,
) -> Option<()> {
    let Ok(sent) = tokio::time::timeout(STALLED, answers.send(some)).await else {
        tracing::warn!("A client does not read its answers; its stream was broken off");
        return None;
    };
    sent.ok()
}

fn streamed(body: Body) -> Response {
    ([(header::CONTENT_TYPE, NDJSON)], body).into_response()
}

fn whole(held: Answers) -> Response {
    let mut position = HeaderMap::new();
    if let Some(reached) = held.position {
        position.insert(POSITION, position_value(reached));
    }
    (position, streamed(Body::from(held.bytes))).into_response()
}

fn broken_off(held: Answers, error: CutShort) -> Response {
    tracing::warn!(%error, "A stream of records was broken off");
    let parts = [Ok(Bytes::from(held.bytes)), Err(error)];
    streamed(Body::from_stream(stream::iter(parts)))
}
