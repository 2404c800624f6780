//! `POST /api/v1/records/{kind}` with `application/x-ndjson` or `text/csv`: a stream of records in,
//! packed or not, a line of answer for each out, as they are confirmed. Neither side is ever held in memory as a whole.

use std::time::Duration;

use access::Refusal;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use service::HttpError;
use tokio::sync::mpsc;

use super::answers::{Answers, Sender};
use super::lines::{BrokenOff, Chunk, Cut, Line, Lines};
use super::table::Table;
use super::unpacked::{Coding, Unpacked};
use super::upload::{Allowance, Stop};
use crate::answer::{POSITION, position_value};

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Answers are held back up to this size while lines keep coming, so that a request of moderate
/// size learns its position by the head of the answer.
const HELD_BYTES: usize = 1024 * 1024;
/// A pause after which the sender is taken to wait for answers.
const PAUSE: Duration = Duration::from_millis(50);
/// Chunks of answers that wait for a client which sends all before it reads.
const WAITING_CHUNKS: usize = 128;
/// A client that neither reads nor goes away is given up after this time.
const STALLED: Duration = Duration::from_mins(1);

/// Writes the lines of a body and answers each.
pub(super) async fn write_lines(
    sender: Sender,
    cut: Cut,
    request: Request,
) -> Result<Response, HttpError> {
    let mut upload = Upload::new(sender, cut, request)?;
    if cut == Cut::Rows {
        upload.read_header().await?;
    }
    let mut held = Answers::default();
    loop {
        let chunk = upload.lines.next_chunk(Some(PAUSE)).await?;
        let (ended, paused) = (chunk.ended, chunk.lines.is_empty());
        let stop = upload.write(chunk, &mut held).await;
        if held.bytes.is_empty() && stop == Some(Stop::KeyEnded) {
            return Err(Refusal::InvalidKey.into());
        }
        if held.bytes.is_empty() && stop == Some(Stop::NoRoom) {
            return Err(service::body::no_room());
        }
        if let Some(stop) = stop {
            upload.stop(stop, &mut held);
        }
        if ended || stop.is_some() {
            return whole(held);
        }
        if paused || held.bytes.len() >= HELD_BYTES {
            break;
        }
    }
    let uploads = &upload.sender.app.uploads;
    let place = uploads.enter(&upload.sender.caller.org).await;
    let (answers, waiting) = mpsc::channel(WAITING_CHUNKS);
    tokio::spawn(async move {
        upload.go_on(answers).await;
        drop(place);
    });
    let rest = stream::unfold(waiting, async |mut waiting| {
        Some((waiting.recv().await?, waiting))
    });
    let first = stream::iter([Ok(Bytes::from(held.bytes))]);
    Ok(streamed(Body::from_stream(first.chain(rest))))
}

/// Lines on their way into the log.
struct Upload {
    sender: Sender,
    lines: Lines,
    allowance: Allowance,
    /// The line that was answered last.
    answered: u64,
}

type Waiting = mpsc::Sender<Result<Bytes, BrokenOff>>;

impl Upload {
    fn new(sender: Sender, cut: Cut, request: Request) -> Result<Self, HttpError> {
        let coding = Coding::of(request.headers())?;
        let room = service::body::room(&request);
        let (access, caller) = (sender.app.access.clone(), sender.caller.clone());
        let body = Unpacked::new(request.into_body().into_data_stream(), coding);
        Ok(Self {
            allowance: sender.app.uploads.allowance(access, caller),
            lines: Lines::new(body.map_err(HttpError::internal)?, cut, room),
            sender,
            answered: 0,
        })
    }

    /// Reads what the columns of a CSV are. They may name no field that there is not.
    async fn read_header(&mut self) -> Result<(), HttpError> {
        let first = self.lines.first().await?;
        let Some(Line { number, text }) = first else {
            let reason = "header row: is missing; the first row of a CSV names its columns";
            return Err(HttpError::bad_request(reason));
        };
        let text = text.ok_or_else(|| HttpError::bad_request("header row: is too long"))?;
        let table = Table::new(self.sender.kind, text);
        let table = table.map_err(|error| HttpError::bad_request(error.to_string()))?;
        (self.sender.table, self.answered) = (Some(table), number);
        Ok(())
    }

    /// Writes the lines of a chunk as far as they are allowed and answers each; says why not all.
    async fn write(&mut self, mut chunk: Chunk, answers: &mut Answers) -> Option<Stop> {
        let no_room = chunk.no_room.then_some(Stop::NoRoom);
        let Some(last) = chunk.lines.last() else {
            // What unpacks to much without a line's end would otherwise go on for long.
            return no_room.or(self.allowance.too_many_bytes(self.lines.received()));
        };
        let last = last.number;
        let (through, stop) = self.allowance.admit(last, self.lines.received()).await;
        chunk.lines.retain(|line| line.number <= through);
        if let Some(last) = chunk.lines.last() {
            self.answered = last.number;
            self.sender.write(chunk.lines, answers).await;
        }
        stop.or(no_room)
    }

    /// Answers the first line that is not written with the reason.
    fn stop(&self, stop: Stop, answers: &mut Answers) {
        stop.note();
        answers.failed(self.answered + 1, &stop.to_string());
    }

    /// Answers the rest, whether the client reads along or only afterwards.
    async fn go_on(mut self, answers: Waiting) {
        let mut key_ended = Box::pin(self.allowance.ended());
        loop {
            let chunk = tokio::select! {
                biased;
                () = &mut key_ended => Err(Stop::KeyEnded),
                () = answers.closed() => return,
                chunk = self.lines.next_chunk(None) => Ok(chunk),
            };
            let mut some = Answers::default();
            let (stop, ended) = match chunk {
                // The answer breaks off too, so that nobody takes the part for the whole.
                Ok(Err(error)) => return pass_on(&answers, Err(error)).await.unwrap_or_default(),
                Ok(Ok(chunk)) => {
                    let ended = chunk.ended;
                    (self.write(chunk, &mut some).await, ended)
                }
                Err(stop) => (Some(stop), true),
            };
            if let Some(stop) = stop {
                self.stop(stop, &mut some);
            }
            let passed_on = pass_on(&answers, Ok(some.bytes.into())).await;
            if passed_on.is_none() || ended || stop.is_some() {
                return;
            }
        }
    }
}

/// Gives answers to the connection; `None` where there is no use in going on.
async fn pass_on(answers: &Waiting, some: Result<Bytes, BrokenOff>) -> Option<()> {
    let Ok(sent) = tokio::time::timeout(STALLED, answers.send(some)).await else {
        tracing::warn!("A client does not read its answers; the request was cut off");
        return None;
    };
    sent.ok()
}

impl From<BrokenOff> for HttpError {
    fn from(error: BrokenOff) -> Self {
        Self::bad_request(error.to_string())
    }
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
