//! A feed as server-sent events.

use std::io;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{Stream, stream};
use tokio::time::{Instant, timeout_at};

use super::reader::{FeedLine, Reader};

/// The interval of keep-alive messages when nothing happens.
const BEAT: Duration = Duration::from_secs(15);

/// Streams all events until the limit is reached.
pub(super) fn stream(reader: Reader) -> impl Stream<Item = Result<Bytes, io::Error>> + Send {
    // Sends the position immediately, so that a client that is cut off before the first event
    // resumes from here. Clients keep an id without data, which is not an event.
    let hello = Bytes::from(format!("id: {}\n\n", reader.start()));
    let hello = stream::once(async { Ok(hello) });
    let events = stream::try_unfold(reader, async |mut reader| {
        let next = next(&mut reader).await?;
        Ok(next.map(|bytes| (bytes, reader)))
    });
    stream::StreamExt::chain(hello, events)
}

async fn next(reader: &mut Reader) -> Result<Option<Bytes>, io::Error> {
    let beat = Instant::now() + BEAT;
    loop {
        match timeout_at(beat, reader.next()).await {
            Err(_) => return Ok(Some(Bytes::from_static(b":\n\n"))),
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(lines))) if lines.is_empty() => {}
            Ok(Ok(Some(lines))) => return Ok(Some(frames(lines))),
            Ok(Err(error)) => return Err(error.into()),
        }
    }
}

fn frames(lines: Vec<FeedLine>) -> Bytes {
    let mut frames = BytesMut::new();
    for FeedLine { position, line } in lines {
        frames.put_slice(format!("id: {position}\ndata: ").as_bytes());
        // JSON on one line has no newline that would end the field.
        frames.put_slice(&line);
        frames.put_slice(b"\n\n");
    }
    frames.freeze()
}
