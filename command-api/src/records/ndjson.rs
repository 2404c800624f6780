//! `POST /api/v1/records/{kind}` with `application/x-ndjson` or `text/csv`: a stream of records in,
//! compressed or not, a response line for each out, as they are confirmed. Neither side is ever
//! held in memory as a whole.

use std::sync::Arc;
use std::time::Duration;

use access::Refusal;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use event_log::{EventLog, Position};
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use schemas::Log;
use service::HttpError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::answers::{Answers, Sender};
use super::beginning::{self, PAUSE};
use super::line_splitter::{Line, SplitBy};
use super::lines::{Chunk, Lines};
use super::order::{Order, SIDE_BY_SIDE};
use super::table::Table;
use super::unpacked::{BrokenOff, Coding, Unpacked};
use super::upload::{Allowance, Stop};
use crate::Origin;
use crate::answer::{POSITION, position_header};

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Answers are buffered up to this size while lines keep coming, so that a request of moderate size
/// gets its last position in the response head. The others get it as a trailer.
const HELD_BYTES: usize = 1024 * 1024;
/// Chunks of answers that wait for a client which sends everything before it reads.
const WAITING_CHUNKS: usize = 128;
/// A client that stays connected without reading is dropped after this time.
const STALLED: Duration = Duration::from_mins(1);

/// Writes the lines of a body and answers each.
pub(super) async fn write_lines(
    sender: Sender,
    split_by: SplitBy,
    request: Request,
) -> Result<Response, HttpError> {
    let mut upload = Upload::new(sender, split_by, request)?;
    let origin = upload.origin().await?;
    if split_by == SplitBy::Rows {
        upload.read_header().await?;
    }
    let (app, org) = (upload.sender.app.clone(), upload.sender.caller.org.clone());
    let mut held = Answers::default();
    if let Some(origin) = origin {
        held.position = Some(beginning::claim(&app.commands, &origin).await?);
    }
    let mut coming = upload.read();
    while held.bytes.len() < HELD_BYTES {
        match coming.next().await {
            None => return whole(held, app.commands.log()).await,
            Some(Came::Nothing) => break,
            Some(Came::Answers(answers)) => held.append(answers),
            Some(Came::Stopped(Stop::KeyEnded, _)) if held.bytes.is_empty() => {
                return Err(Refusal::InvalidKey.into());
            }
            Some(Came::Stopped(Stop::NoRoom, _)) if held.bytes.is_empty() => {
                return Err(service::body::no_room());
            }
            Some(Came::Stopped(stop, line)) => {
                held.stopped(stop, line);
                return whole(held, app.commands.log()).await;
            }
            Some(Came::BrokenOff(error)) => return Err(error.into()),
        }
    }
    let place = app.uploads.enter(&org).await;
    let begun = position_of(held.position, app.commands.log()).await;
    let (answers, waiting) = mpsc::channel(WAITING_CHUNKS);
    let (ended, end) = oneshot::channel();
    tokio::spawn(async move {
        if let Some(reached) = coming.pass_all_on(answers, begun).await {
            // The client may be gone.
            let _ = ended.send(reached);
        }
        drop(place);
    });
    let rest = stream::unfold(waiting, async |mut waiting| {
        Some((waiting.recv().await?, waiting))
    });
    let first = stream::iter([Ok(Bytes::from(held.bytes))]);
    let lines = Body::from_stream(first.chain(rest));
    // HTTP/1 only sends trailers that its head announces, to clients with `TE: trailers`.
    let announced = [(header::TRAILER, HeaderValue::from(POSITION))];
    // Without the position the writing has stopped before its end, and the response breaks off too.
    let last = async move { Some(end.await.map(trailers).map_err(axum::Error::new)) };
    let body = Body::new(lines.with_trailers(last));
    Ok((announced, position_header(begun), streamed(body)).into_response())
}

/// Lines on their way into the log.
struct Upload {
    sender: Arc<Sender>,
    lines: Lines,
    allowance: Allowance,
    order: Order,
    /// The line that was answered last.
    answered: u64,
}

/// The results of an upload, in the order of its lines.
enum Came {
    /// The answers to some lines.
    Answers(Answers),
    /// Nothing for a moment: the client may be waiting for answers.
    Nothing,
    /// The end before the last line, and the first line that is not written.
    Stopped(Stop, u64),
    /// The body broke off.
    BrokenOff(BrokenOff),
}

/// Writes in progress, some chunks concurrently.
struct Coming {
    under_way: mpsc::Receiver<UnderWay>,
    _reading: AbortOnDropHandle<()>,
}

enum UnderWay {
    Chunk(AbortOnDropHandle<Answers>),
    Else(Came),
}

type Waiting = mpsc::Sender<Result<Bytes, BrokenOff>>;

impl Upload {
    fn new(sender: Sender, split_by: SplitBy, request: Request) -> Result<Self, HttpError> {
        let coding = Coding::of(request.headers())?;
        let room = service::body::room(&request);
        let (access, caller) = (sender.app.access.clone(), sender.caller.clone());
        let body = Unpacked::of(request, coding)?;
        Ok(Self {
            allowance: sender.app.uploads.allowance(access, caller),
            lines: Lines::new(body, split_by, room),
            sender: Arc::new(sender),
            order: Order::default(),
            answered: 0,
        })
    }

    /// The origin with the receipt of the whole upload, if it has an `Idempotency-Key` and its
    /// beginning comes in time.
    async fn origin(&mut self) -> Result<Option<Origin>, HttpError> {
        if !self.sender.repeatable.has_key() {
            return Ok(None);
        }
        let key_ended = self.allowance.ended();
        tokio::select! {
            biased;
            () = key_ended => Err(Refusal::InvalidKey.into()),
            origin = beginning::origin(&self.sender, &mut self.lines) => origin,
        }
    }

    /// Reads the columns of a CSV. They may name only existing fields.
    async fn read_header(&mut self) -> Result<(), HttpError> {
        let first = self.lines.first().await?;
        let Some(Line { number, text }) = first else {
            let reason = "header row: is missing; the first row of a CSV names its columns";
            return Err(HttpError::bad_request(reason));
        };
        let text = text.ok_or_else(|| HttpError::bad_request("header row: is too long"))?;
        let table = Table::new(self.sender.kind, text);
        let table = table.map_err(|error| HttpError::bad_request(error.to_string()))?;
        if let Some(sender) = Arc::get_mut(&mut self.sender) {
            sender.table = Some(table);
        }
        self.allowance.leave_out(number);
        self.answered = number;
        Ok(())
    }

    /// Starts reading and writing.
    fn read(mut self) -> Coming {
        // One more is awaited, and one waits for room among these.
        let (chunks, under_way) = mpsc::channel(SIDE_BY_SIDE - 2);
        let reading = tokio::spawn(async move {
            let ended = self.read_into(&chunks).await;
            if let Err(end) = ended {
                // The receiver may be gone.
                let _ = chunks.send(UnderWay::Else(end)).await;
            }
        });
        Coming {
            under_way,
            _reading: AbortOnDropHandle::new(reading),
        }
    }

    async fn read_into(&mut self, chunks: &mpsc::Sender<UnderWay>) -> Result<(), Came> {
        let mut key_ended = Box::pin(self.allowance.ended());
        let mut timeout = Some(PAUSE);
        loop {
            let chunk = tokio::select! {
                biased;
                () = &mut key_ended => return Err(self.stopped(Stop::KeyEnded)),
                chunk = self.lines.next_chunk(timeout) => chunk.map_err(Came::BrokenOff)?,
            };
            let (ended, is_empty) = (chunk.ended, chunk.lines.is_empty());
            let stop = self.begin(chunk, chunks).await;
            if let Some(stop) = stop {
                return Err(self.stopped(stop));
            }
            if is_empty && !ended && timeout.take().is_some() {
                let nothing = UnderWay::Else(Came::Nothing);
                if chunks.send(nothing).await.is_err() {
                    return Ok(());
                }
            }
            if ended || chunks.is_closed() {
                return Ok(());
            }
        }
    }

    /// Starts writing the lines of a chunk as far as they are allowed. Returns why not all are.
    async fn begin(&mut self, chunk: Chunk, chunks: &mpsc::Sender<UnderWay>) -> Option<Stop> {
        let no_room = chunk.no_room.then_some(Stop::NoRoom);
        let Chunk {
            mut lines, room, ..
        } = chunk;
        let Some(last) = lines.last() else {
            // A body that expands to much without a line end would otherwise continue for long.
            return no_room.or(self.allowance.too_many_bytes(self.lines.received()));
        };
        let last = last.number;
        let (through, stop) = self.allowance.admit(last, self.lines.received()).await;
        lines.retain(|line| line.number <= through);
        if let Some(last) = lines.last() {
            self.answered = last.number;
            let read = self.sender.read_all(lines);
            let (turn, sender) = (self.order.turn(&read.wanted), Arc::clone(&self.sender));
            let writing = tokio::spawn(async move {
                turn.comes().await;
                let answers = sender.write(read).await;
                drop((turn, room));
                answers
            });
            let chunk = UnderWay::Chunk(AbortOnDropHandle::new(writing));
            // If the receiver is gone, the caller finds out.
            let _ = chunks.send(chunk).await;
        }
        stop.or(no_room)
    }

    fn stopped(&self, stop: Stop) -> Came {
        Came::Stopped(stop, self.answered + 1)
    }
}

impl Coming {
    async fn next(&mut self) -> Option<Came> {
        match self.under_way.recv().await? {
            UnderWay::Else(came) => Some(came),
            UnderWay::Chunk(writing) => match writing.await {
                Ok(answers) => Some(Came::Answers(answers)),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
        }
    }

    /// Forwards all answers, whether the client reads meanwhile or only afterwards. Returns the
    /// position reached, from the one at which the response began; `None` if the response breaks
    /// off or nobody reads it.
    async fn pass_all_on(mut self, answers: Waiting, begun: Position) -> Option<Position> {
        let mut reached = begun;
        loop {
            let came = tokio::select! {
                biased;
                () = answers.closed() => return None,
                came = self.next() => came,
            };
            let mut some = Answers {
                position: Some(reached),
                ..Answers::default()
            };
            let is_end = matches!(came, Some(Came::Stopped(..)));
            match came {
                None => return Some(reached),
                Some(Came::Nothing) => continue,
                // The response breaks off too, so that the client does not take a part for the
                // whole.
                Some(Came::BrokenOff(error)) => {
                    pass_on(&answers, Err(error)).await;
                    return None;
                }
                Some(Came::Answers(more)) => some.append(more),
                Some(Came::Stopped(stop, line)) => some.stopped(stop, line),
            }
            reached = some.position.unwrap_or(reached);
            pass_on(&answers, Ok(some.bytes.into())).await?;
            if is_end {
                return Some(reached);
            }
        }
    }
}

impl Answers {
    /// Answers the first line that is not written with the reason.
    fn stopped(&mut self, stop: Stop, line: u64) {
        stop.note();
        self.failed(line, &stop.to_string());
    }
}

/// Sends answers to the connection; `None` if there is no use in continuing.
async fn pass_on(answers: &Waiting, some: Result<Bytes, BrokenOff>) -> Option<()> {
    let Ok(sent) = tokio::time::timeout(STALLED, answers.send(some)).await else {
        tracing::warn!("A client does not read its answers; the request was cut off");
        return None;
    };
    sent.ok()
}

impl From<BrokenOff> for HttpError {
    fn from(error: BrokenOff) -> Self {
        match error {
            BrokenOff::NoRoom(_) => service::body::no_room(),
            error => Self::bad_request(error.to_string()),
        }
    }
}

fn streamed(body: Body) -> Response {
    ([(header::CONTENT_TYPE, NDJSON)], body).into_response()
}

/// Returns the whole response, or an error if the log confirmed nothing at all.
async fn whole(held: Answers, log: &EventLog) -> Result<Response, HttpError> {
    if let (Some(error), false) = (held.trouble, held.confirmed) {
        return Err(error.into());
    }
    let position = position_of(held.position, log).await;
    Ok((position_header(position), streamed(Body::from(held.bytes))).into_response())
}

/// The position at which reads see what was written. If nothing is, it is the log's present end.
async fn position_of(written: Option<Position>, log: &EventLog) -> Position {
    if let Some(written) = written {
        return written;
    }
    // If the log does not answer, there is nothing that a read would have to wait for.
    let end = log.end(Log::Events).await;
    end.unwrap_or_else(|_| log.position(Log::Events, 0))
}

fn trailers(reached: Position) -> HeaderMap {
    position_header(reached).into_iter().collect()
}
