//! A server as a client meets it among replicas of the same streams, of which the nearest lags.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{LocalNats, NatsOptions, PASSWORD};
use crate::home::{self, TemporaryHome};
use crate::{Error, proxy};

/// Requests that any replica of a stream answers; only its leader answers the others.
const READS: &[u8] = b"$JS.API.DIRECT.GET.";
const CONSUMERS: &[u8] = b"$JS.API.CONSUMER.";
/// The subject that requests a consumer's messages, up to the names of its stream and itself.
const NEXT: &[u8] = b"$JS.API.CONSUMER.MSG.NEXT.";
/// Parts of the response to creating a consumer: its type, and what precedes the name.
const MADE: &[u8] = b"consumer_create_response";
const NAMED: &[u8] = b"\"name\":\"";

/// The requests that a copy answers instead of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// All reads.
    Reads,
    /// Reads, and the creation of consumers.
    ReadsAndConsumers,
}

/// The address of a copy, and what it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct There {
    address: String,
    answers: Answers,
}

/// An address of a server, behind which a second one answers what any replica of a stream may
/// answer: with the state when [`LaggingCopy::hold_back`] was last called. What only a stream's
/// leader answers always comes from the server itself.
///
/// It treats streams that are to be kept by three servers as streams of one, so that a client that
/// expects replicas can be shown one that lags.
#[derive(Debug)]
pub struct LaggingCopy {
    url: String,
    home: PathBuf,
    there: Arc<Mutex<Option<There>>>,
    copy: Option<(LocalNats, TemporaryHome)>,
}

impl LaggingCopy {
    /// In front of the server of a home; served as long as the runtime it was created in.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn before(server: &LocalNats) -> io::Result<Self> {
        let url = server.url();
        let leader = proxy::server_in(&url)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let here = listener.local_addr()?.to_string();
        let there = Arc::default();
        tokio::spawn(serve(listener, leader.to_owned(), Arc::clone(&there)));
        Ok(Self {
            url: url.replacen(leader, &here, 1),
            home: server.home.clone(),
            there,
            copy: None,
        })
    }

    /// The address to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on the copy receives nothing more.
    ///
    /// # Errors
    /// If it cannot be started.
    pub async fn hold_back(&mut self, answers: Answers) -> Result<(), Error> {
        self.catch_up();
        let place = TemporaryHome::new()?;
        let password = home::secret(&self.home, PASSWORD)?.value;
        home::share_secret(place.path(), PASSWORD, &password)?;
        let data = Path::new("nats/data");
        let (from, to) = (self.home.join(data), place.path().join(data));
        copy_folder(&from, &to).map_err(Error::file("copy", &from))?;
        let copy = LocalNats::start(place.path(), NatsOptions::default()).await?;
        *self.lock() = proxy::server_in(&copy.url()).ok().map(|address| There {
            address: address.to_owned(),
            answers,
        });
        self.copy = Some((copy, place));
        Ok(())
    }

    /// From now on the copy answers only this; consumers that were created there stay.
    pub fn answer_only(&self, answers: Answers) {
        if let Some(there) = &mut *self.lock() {
            there.answers = answers;
        }
    }

    /// The copy is up to date again.
    pub fn catch_up(&mut self) {
        *self.lock() = None;
        self.copy = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<There>> {
        self.there.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl There {
    fn answers(&self, subject: &[u8]) -> bool {
        let consumes = self.answers == Answers::ReadsAndConsumers;
        let asks = subject.starts_with(READS) || subject.starts_with(NEXT);
        asks || consumes && subject.starts_with(CONSUMERS)
    }
}

/// Copies a folder that a server works in; files that disappear meanwhile are left out.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else if kind.is_file() {
            match std::fs::copy(entry.path(), to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

async fn serve(listener: TcpListener, leader: String, there: Arc<Mutex<Option<There>>>) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(&leader).await else {
            continue;
        };
        let (from_client, to_client) = client.into_split();
        let (from_leader, to_leader) = server.into_split();
        let (answers, answered) = mpsc::unbounded_channel();
        tokio::spawn(answer(answered, to_client));
        let of_leader = Arc::<Mutex<HashSet<Vec<u8>>>>::default();
        let made = Arc::clone(&of_leader);
        let note_made = move |frame: &Frame| {
            made.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(frame.made().map(<[u8]>::to_vec));
            true
        };
        tokio::spawn(carry(from_leader, answers.clone(), note_made));
        let client = Client {
            to_leader,
            answers,
            there: Arc::clone(&there),
            greeting: Vec::new(),
            subscriptions: HashMap::new(),
            of_leader,
            copy: None,
        };
        tokio::spawn(client.run(from_client));
    }
}

/// A client connection: one to the leader and at times a second one to the copy.
struct Client {
    to_leader: OwnedWriteHalf,
    answers: mpsc::UnboundedSender<Vec<u8>>,
    there: Arc<Mutex<Option<There>>>,
    /// How the client introduced itself.
    greeting: Vec<u8>,
    /// Its subscriptions, by the client's own numbers.
    subscriptions: HashMap<Vec<u8>, Vec<u8>>,
    /// The names of consumers that the leader created.
    of_leader: Arc<Mutex<HashSet<Vec<u8>>>>,
    copy: Option<Copy>,
}

struct Copy {
    there: There,
    to: OwnedWriteHalf,
    _from: AbortOnDropHandle<()>,
}

impl Client {
    async fn run(mut self, from: OwnedReadHalf) -> io::Result<()> {
        let mut from = BufReader::new(from);
        while let Some(frame) = Frame::read(&mut from).await? {
            self.forward(frame).await?;
        }
        self.to_leader.shutdown().await
    }

    async fn forward(&mut self, mut frame: Frame) -> io::Result<()> {
        let of_leader = Arc::clone(&self.of_leader);
        let copy = self.copy().await;
        match frame.verb() {
            b"CONNECT" => self.greeting.clone_from(&frame.bytes),
            b"SUB" | b"UNSUB" => {
                if let Some(copy) = copy {
                    copy.to.write_all(&frame.bytes).await?;
                }
                let number = frame.number().to_vec();
                if frame.verb() == b"SUB" {
                    self.subscriptions.insert(number, frame.bytes.clone());
                } else {
                    self.subscriptions.remove(&number);
                }
            }
            b"PUB" | b"HPUB" => {
                let subject = frame.word(1);
                let is_leaders = subject.starts_with(NEXT) && {
                    let name = subject.rsplit(|byte| *byte == b'.').next();
                    let made = of_leader.lock().unwrap_or_else(PoisonError::into_inner);
                    name.is_some_and(|name| made.contains(name))
                };
                if let Some(copy) = copy
                    && !is_leaders
                    && copy.there.answers(subject)
                {
                    return copy.to.write_all(&frame.bytes).await;
                }
                if subject.starts_with(b"$JS.API.STREAM.") {
                    frame.replace(b"\"num_replicas\":3", b"\"num_replicas\":1");
                }
            }
            _ => {}
        }
        self.to_leader.write_all(&frame.bytes).await
    }

    /// Returns the copy if it currently lags; it receives all subscriptions of the client.
    async fn copy(&mut self) -> Option<&mut Copy> {
        let there = self
            .there
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let there = there.filter(|_| !self.greeting.is_empty());
        match (&mut self.copy, there) {
            (Some(copy), Some(there)) if copy.there.address == there.address => copy.there = there,
            (_, Some(there)) => self.copy = self.meet(there).await.ok(),
            (_, None) => self.copy = None,
        }
        self.copy.as_mut()
    }

    async fn meet(&self, there: There) -> io::Result<Copy> {
        let (from, mut to) = TcpStream::connect(&there.address).await?.into_split();
        to.write_all(&self.greeting).await?;
        for subscription in self.subscriptions.values() {
            to.write_all(subscription).await?;
        }
        // The client's own connection is the leader's; from the copy it receives messages only.
        let is_message = |frame: &Frame| matches!(frame.verb(), b"MSG" | b"HMSG");
        let from = tokio::spawn(carry(from, self.answers.clone(), is_message));
        Ok(Copy {
            there,
            to,
            _from: AbortOnDropHandle::new(from),
        })
    }
}

async fn carry(
    from: OwnedReadHalf,
    to: mpsc::UnboundedSender<Vec<u8>>,
    wanted: impl Fn(&Frame) -> bool,
) {
    let mut from = BufReader::new(from);
    while let Ok(Some(frame)) = Frame::read(&mut from).await {
        if wanted(&frame) && to.send(frame.bytes).is_err() {
            return;
        }
    }
}

async fn answer(mut answers: mpsc::UnboundedReceiver<Vec<u8>>, mut client: OwnedWriteHalf) {
    while let Some(bytes) = answers.recv().await {
        if client.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// One line of the protocol, with the message that belongs to it.
struct Frame {
    bytes: Vec<u8>,
    /// Where the line ends.
    line: usize,
}

impl Frame {
    async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        if from.read_until(b'\n', &mut bytes).await? == 0 {
            return Ok(None);
        }
        let mut frame = Self {
            line: bytes.len(),
            bytes,
        };
        if matches!(frame.verb(), b"PUB" | b"HPUB" | b"MSG" | b"HMSG") {
            let size = frame.words().next_back().unwrap_or_default();
            let size = std::str::from_utf8(size)
                .ok()
                .and_then(|size| size.parse().ok());
            let size: usize = size.ok_or(io::ErrorKind::InvalidData)?;
            let start = frame.bytes.len();
            frame.bytes.resize(start + size + 2, 0);
            from.read_exact(&mut frame.bytes[start..]).await?;
        }
        Ok(Some(frame))
    }

    fn words(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        let words = self.bytes[..self.line].split(u8::is_ascii_whitespace);
        words.filter(|word| !word.is_empty())
    }

    fn word(&self, nth: usize) -> &[u8] {
        self.words().nth(nth).unwrap_or_default()
    }

    fn verb(&self) -> &[u8] {
        self.word(0)
    }

    /// The name of the consumer that was created, if this reports one.
    fn made(&self) -> Option<&[u8]> {
        let body = self.bytes.get(self.line..)?;
        let place = |what: &[u8]| body.windows(what.len()).position(|part| part == what);
        place(MADE)?;
        let name = &body[place(NAMED)? + NAMED.len()..];
        name.split(|byte| *byte == b'"').next()
    }

    /// The client's number of the subscription that this begins or ends.
    fn number(&self) -> &[u8] {
        if self.verb() == b"UNSUB" {
            return self.word(1);
        }
        self.words().next_back().unwrap_or_default()
    }

    /// Replaces something with something else of the same length.
    fn replace(&mut self, what: &[u8], by: &[u8]) {
        let found = self.bytes.windows(what.len()).position(|part| part == what);
        if let Some(at) = found {
            self.bytes[at..at + what.len()].copy_from_slice(by);
        }
    }
}
