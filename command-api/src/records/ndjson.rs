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

/// Writes the lines of a body and answers each.
pub(super) async fn write_lines(mut sender: Sender, body: Body) -> Result<Response, HttpError> {
    let mut lines = Lines::new(body.into_data_stream());
    let mut held = Answers::default();
    loop {
        let chunk = lines.next_chunk(Some(PAUSE)).await;
        let chunk = chunk.map_err(|error| HttpError::bad_request(error.to_string()))?;
        let (ended, paused) = (chunk.ended, chunk.lines.is_empty());
        sender.write(chunk.lines, &mut held).await;
        if ended {
            return whole(held);
        }
        if paused || held.bytes.len() >= HELD_BYTES {
            break;
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
async fn go_on(
    mut sender: Sender,
    mut lines: Lines,
    answers: mpsc::Sender<Result<Bytes, BrokenOff>>,
) {
    loop {
        let chunk = match lines.next_chunk(None).await {
            Ok(chunk) => chunk,
            // The answer breaks off too, so that nobody takes the part for the whole.
            Err(error) => return pass_on(&answers, Err(error)).await.unwrap_or_default(),
        };
        let ended = chunk.ended;
        let mut some = Answers::default();
        sender.write(chunk.lines, &mut some).await;
        if pass_on(&answers, Ok(some.bytes.into())).await.is_none() || ended {
            return;
        }
    }
}

/// Gives answers to the connection; `None` where there is no use in going on.
async fn pass_on(
    answers: &mpsc::Sender<Result<Bytes, BrokenOff>>,
    some: Result<Bytes, BrokenOff>,
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

/// The whole answer, or an error where the log confirmed nothing at all.
fn whole(held: Answers) -> Result<Response, HttpError> {
    if let (Some(error), false) = (held.trouble, held.confirmed) {
        return Err(error.into());
    }
    let mut position = HeaderMap::new();
    if let Some(reached) = held.position {
        position.insert(POSITION, position_value(reached));
    }
    Ok((position, streamed(Body::from(held.bytes))).into_response())
}
