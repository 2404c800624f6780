//! The event log.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::{self, kv};
use futures::{StreamExt as _, stream};
use schemas::{AggregateType, Log, OrgId, SYSTEM_ORG, StreamId};
use tokio::sync::Semaphore;
use traces::Traced as _;

use crate::answer_times::AnswerTimes;
use crate::append::Appender;
use crate::party::Party;
use crate::shared::SharedStream;
use crate::streams::{self, LogStream, Streams};
use crate::subject::{Subjects, ids_of, kind_of};
use crate::throttle::{Resource, Throttle};
use crate::vault::Opened;
use crate::{
    AppendError, Bucket, Commit, Durability, Error, Keyring, LogSettings, Position, PositionError,
    Vault, connection, durability,
};

/// Commits of one [`EventLog::commit_each`] in flight at once: enough to fill batches.
const SIDE_BY_SIDE: usize = 1_000;
/// Pages that this program itself requests at a time. Everything else that it follows comes over
/// the same connection, after them.
const PAGES: usize = 4;
/// How many of these calls one caller has in flight. They wait for each other if it is held back.
const CALLS: usize = 4;
/// How long the server has at least to create or change a stream, which it flushes to disk.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the leader of a stream has to answer for an outside reader, whose connection may have
/// much else on it. A leader that has just been lost never answers: the next one has to be asked.
const READERS_TIMEOUT: Duration = Duration::from_secs(3);

/// The event log. Clones are cheap and share its connections.
#[derive(Clone)]
pub struct EventLog {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    /// Reads what this program itself follows, so that what it receives does not delay its appends.
    followers: jetstream::Context,
    answers_to_followers: AnswerTimes,
    /// Reads for outside readers, so that nothing they do delays appends.
    readers: jetstream::Context,
    answers_to_readers: AnswerTimes,
    /// Pages in flight to this program itself.
    pages: Semaphore,
    context: jetstream::Context,
    settings: LogSettings,
    durability: Durability,
    throttle: Throttle,
    subjects: Subjects,
    streams: Streams,
    events: Appender,
    locations: Appender,
    deliveries: Appender,
    /// The streams that this process follows.
    followed: Followed,
    keyring: Keyring,
    vault: Vault,
}

#[derive(Default)]
struct Followed {
    events: Arc<SharedStream>,
    locations: Arc<SharedStream>,
    deliveries: Arc<SharedStream>,
}

impl EventLog {
    /// Connects, creates missing streams and checks those that exist.
    pub async fn connect(settings: &LogSettings, keyring: Keyring) -> Result<Self, Error> {
        let client = connection::open(settings.nats_url()).await?;
        let timeout = settings.timeout().max(PREPARE_TIMEOUT);
        let context = context_of(&client, timeout);
        streams::check_server(&client)?;
        streams::check_prefix(&settings.log_prefix)?;
        let followers = connection::open(settings.nats_url()).await?;
        let followers = context_of(&followers, timeout);
        let readers = connection::open_in_background(settings.nats_url()).await?;
        let readers = context_of(&readers, READERS_TIMEOUT);
        let opened = Opened::by(&context, settings, &keyring).await?;
        let keyring = opened.keyring.clone();
        let subjects = Subjects::new(&settings.log_prefix, keyring.clone());
        let streams = Box::pin(Streams::prepare(&context, settings, &subjects)).await?;
        let durability = match &settings.nats_system_url {
            Some(url) => durability::read(url).await,
            None => Durability::Unknown,
        };
        let vault = Vault::open(&context, settings, opened).await?;
        let throttle = Throttle::new(settings);
        let appender = |log| {
            let (subjects, throttle) = (subjects.clone(), throttle.clone());
            Appender::start(&context, subjects, streams.get(log), throttle)
        };
        let shared = Shared {
            events: appender(Log::Events),
            locations: appender(Log::Locations),
            deliveries: appender(Log::Deliveries),
            followed: Followed::default(),
            client,
            followers,
            answers_to_followers: AnswerTimes::of_reads(),
            readers,
            answers_to_readers: AnswerTimes::of_reads(),
            pages: Semaphore::new(PAGES),
            context,
            settings: settings.clone(),
            durability,
            throttle,
            subjects,
            streams,
            keyring,
            vault,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// How durable an acknowledgement is on this server.
    pub fn durability(&self) -> Durability {
        self.shared.durability
    }

    /// The ports that the server or servers listen at, as far as their addresses show.
    pub fn server_ports(&self) -> Vec<u16> {
        connection::ports(self.shared.settings.nats_url())
    }

    /// Whether the server is currently connected.
    pub fn is_connected(&self) -> bool {
        self.shared.client.connection_state() == State::Connected
    }

    /// Appends all of a decision's events or none of them, and returns the position of the last
    /// once all are acknowledged. A commit belongs to one stream of the log.
    ///
    /// Commits that arrive at the same time share the server's flush to disk.
    pub async fn commit(&self, commit: Commit) -> Result<Position, AppendError> {
        self.commit_within(commit, self.settings().timeout()).await
    }

    /// Appends many decisions, each separately, in as few flushes as they need.
    pub async fn commit_each(&self, commits: Vec<Commit>) -> Vec<Result<Position, AppendError>> {
        let side_by_side = commits.len().min(SIDE_BY_SIDE);
        let timeout = self.settings().timeout_of_each(CALLS * side_by_side);
        let commits = commits
            .into_iter()
            .map(|commit| self.commit_within(commit, timeout));
        // A commit's timeout starts only once it is submitted.
        stream::iter(commits).buffered(SIDE_BY_SIDE).collect().await
    }

    async fn commit_within(
        &self,
        commit: Commit,
        timeout: Duration,
    ) -> Result<Position, AppendError> {
        let log = commit.log()?;
        let span = commit.span();
        let appended = self.appender(log).commit(commit, timeout);
        let appended = appended.within(&span).await;
        let sequence = appended.inspect_err(|_| span.failed())?;
        span.note("waypost.sequence", || {
            i64::try_from(sequence).unwrap_or(i64::MAX)
        });
        Ok(self.position(log, sequence))
    }

    /// The position of an event.
    pub fn position(&self, log: Log, sequence: u64) -> Position {
        Position::new(log, self.shared.streams.get(log).epoch, sequence)
    }

    /// Whether checkpoints of this epoch of a stream hold for the current stream: the epoch is its
    /// own, or that of the stream that it was restored from together with its checkpoints.
    pub fn carries_on(&self, log: Log, epoch: u32) -> bool {
        let stream = self.shared.streams.get(log);
        epoch == stream.epoch || Some(epoch) == stream.restored_from()
    }

    /// Reads a position that came from outside.
    pub fn parse_position(&self, text: &str) -> Result<Position, PositionError> {
        let position: Position = text.parse()?;
        if position.epoch() == self.shared.streams.get(position.log()).epoch {
            Ok(position)
        } else {
            Err(PositionError::OldEpoch)
        }
    }

    /// The stream of the claim on `value`; `kind` separates values that are unique independently,
    /// such as e-mail addresses.
    pub fn claim(&self, kind: &str, value: &str) -> StreamId {
        let id = self
            .keyring()
            .keyed_hash("claim", &[kind.as_bytes(), value.as_bytes()]);
        StreamId {
            org: OrgId::from(SYSTEM_ORG),
            aggregate: AggregateType::Claim,
            id,
        }
    }

    /// The subject of an aggregate's events, which names it if an event cannot be decoded.
    pub fn subject_of(&self, stream: &StreamId) -> String {
        self.subjects().of(stream).to_string()
    }

    /// The kind of aggregate that a subject belongs to.
    pub fn kind_of(subject: &str) -> Option<AggregateType> {
        kind_of(subject)
    }

    /// The ids of the organization and the aggregate that a subject names, unless they are hashed.
    pub fn ids_of(subject: &str) -> Option<(OrgId, &str)> {
        ids_of(subject)
    }

    /// A key-value bucket for what is not an event: leases and checkpoints.
    pub async fn bucket(&self, name: &str, max_age: Option<Duration>) -> Result<Bucket, Error> {
        bucket(&self.shared.context, &self.shared.settings, name, max_age).await
    }

    /// The same, if it exists.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn existing_bucket(&self, name: &str) -> Result<Option<Bucket>, Error> {
        Bucket::existing(&self.shared.context, &self.shared.settings, name).await
    }

    /// The installation's keys.
    pub fn keyring(&self) -> &Keyring {
        &self.shared.keyring
    }

    /// How long the events of a log are kept; `None` for ever.
    pub fn age_limit(&self, log: Log) -> Option<Duration> {
        let days = match log {
            Log::Events => return None,
            Log::Locations => self.shared.settings.locations_days,
            Log::Deliveries => self.shared.settings.deliveries_days,
        };
        (days > 0).then(|| Duration::from_secs(days.saturating_mul(86_400)))
    }

    /// The vault of owners' keys.
    pub fn vault(&self) -> &Vault {
        &self.shared.vault
    }

    fn appender(&self, log: Log) -> &Appender {
        match log {
            Log::Events => &self.shared.events,
            Log::Locations => &self.shared.locations,
            Log::Deliveries => &self.shared.deliveries,
        }
    }

    pub(crate) fn followed(&self, log: Log) -> &Arc<SharedStream> {
        let followed = &self.shared.followed;
        match log {
            Log::Events => &followed.events,
            Log::Locations => &followed.locations,
            Log::Deliveries => &followed.deliveries,
        }
    }

    pub(crate) fn settings(&self) -> &LogSettings {
        &self.shared.settings
    }

    pub(crate) fn context(&self) -> &jetstream::Context {
        &self.shared.context
    }

    pub(crate) fn client(&self) -> &Client {
        &self.shared.client
    }

    pub(crate) fn followers(&self) -> &jetstream::Context {
        &self.shared.followers
    }

    /// Waits until an organization may read for an outside reader: while the log is slow, those
    /// that read much yield to others.
    pub async fn until_read(&self, org: &OrgId) {
        self.throttle()
            .until_read(Party::of_organization(org))
            .await;
    }

    /// Counts bytes that an organization read.
    pub fn count_read(&self, org: &OrgId, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let party = Party::of_organization(org);
        self.throttle().count(Resource::Bytes, party, bytes);
    }

    pub(crate) fn throttle(&self) -> &Throttle {
        &self.shared.throttle
    }

    pub(crate) fn readers(&self) -> &jetstream::Context {
        &self.shared.readers
    }

    pub(crate) fn answers_to_followers(&self) -> &AnswerTimes {
        &self.shared.answers_to_followers
    }

    pub(crate) fn answers_to_readers(&self) -> &AnswerTimes {
        &self.shared.answers_to_readers
    }

    pub(crate) fn pages(&self) -> &Semaphore {
        &self.shared.pages
    }

    pub(crate) fn subjects(&self) -> &Subjects {
        &self.shared.subjects
    }

    /// The stream of the bucket of owners' keys, which is kept like those of the log, and has no
    /// epoch.
    pub(crate) fn keys_stream(&self) -> LogStream {
        let bucket = self.vault().bucket();
        let mut stream = self.streams().get(Log::Events).clone();
        stream.name.clone_from(&bucket.stream_name);
        stream.stream.clone_from(&bucket.stream);
        stream.epoch = 0;
        stream
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.shared.streams
    }
}

fn context_of(client: &Client, timeout: Duration) -> jetstream::Context {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(timeout);
    context
}

pub(crate) async fn bucket(
    context: &jetstream::Context,
    settings: &LogSettings,
    name: &str,
    max_age: Option<Duration>,
) -> Result<Bucket, Error> {
    let bucket = format!("{}{name}", settings.log_prefix);
    let config = kv::Config {
        bucket: bucket.clone(),
        history: 1,
        max_age: max_age.unwrap_or_default(),
        num_replicas: settings.log_replicas,
        ..kv::Config::default()
    };
    let create = || context.create_or_update_key_value(config.clone());
    let store = streams::until_answered(create).await;
    let store = store.map_err(|error| Error::Prepare {
        name: bucket,
        reason: error.to_string(),
    })?;
    Ok(Bucket::new(context, store, settings))
}
