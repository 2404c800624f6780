//! A feed as server-sent events.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use access::{Access, Caller};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{Stream, stream};
use tokio::time::{Instant, timeout};

use super::reader::{Reader, Told};

/// A key that was withdrawn ends its feeds within this time.
const LOOK: Duration = Duration::from_millis(500);
/// A sign of life, where nothing happens.
const BEAT: Duration = Duration::from_secs(15);

struct Connection {
    reader: Reader,
    access: Access,
    caller: Arc<Caller>,
    quiet_since: Instant,
}

/// Everything that is told, until the key ends or the limit is reached.
pub(super) fn stream(
    reader: Reader,
    access: Access,
    caller: Arc<Caller>,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    let connection = Connection {
        reader,
        access,
        caller,
        quiet_since: Instant::now(),
    };
    // Something at once, so that the client sees itself connected.
    let hello = stream::once(async { Ok(Bytes::from_static(b":\n\n")) });
    let told = stream::try_unfold(connection, |mut connection| async move {
        let next = connection.next().await?;
        Ok(next.map(|bytes| (bytes, connection)))
    });
    stream::StreamExt::chain(hello, told)
}

impl Connection {
    async fn next(&mut self) -> Result<Option<Bytes>, io::Error> {
        loop {
            let told = timeout(LOOK, self.reader.next()).await;
            if !self.access.is_in_force(&self.caller) {
                return Ok(None);
            }
            match told {
                Ok(Ok(None)) => return Ok(None),
                Ok(Ok(Some(told))) if !told.is_empty() => {
                    self.quiet_since = Instant::now();
                    return Ok(Some(frames(told)));
                }
                Ok(Err(error)) => return Err(error.into()),
                Ok(Ok(Some(_))) | Err(_) if self.quiet_since.elapsed() >= BEAT => {
                    self.quiet_since = Instant::now();
                    return Ok(Some(Bytes::from_static(b":\n\n")));
                }
                Ok(Ok(Some(_))) | Err(_) => {}
            }
        }
    }
}

fn frames(told: Vec<Told>) -> Bytes {
    let mut frames = BytesMut::new();
    for Told { position, line } in told {
        frames.put_slice(format!("id: {position}\ndata: ").as_bytes());
        // JSON on one line has no newline that would end the field.
        frames.put_slice(&line);
        frames.put_slice(b"\n\n");
    }
    frames.freeze()
}
