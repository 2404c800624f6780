//! The streams: created once, always read back.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::{
    AccountError, AccountErrorKind, CreateStreamError, CreateStreamErrorKind, GetStreamError,
    GetStreamErrorKind,
};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use ring::rand::{SecureRandom as _, SystemRandom};
use schemas::Log;
use tokio::time::Instant;

use crate::beginning::{BEGINS, begins};
use crate::read::ReadTimeout;
use crate::subject::Subjects;
use crate::{Error, LogSettings};

/// The first version with atomic batches.
const OLDEST_SERVER: (i64, i64, i64) = (2, 12, 0);
pub(crate) const EPOCH: &str = "waypost-epoch";
/// The epoch of the stream that a restored one was backed up from.
pub(crate) const RESTORED_FROM: &str = "waypost-restored-from";
/// Identifies, by a keyed hash, the master key that the log is written with: under another one
/// nothing could be unsealed, and no hashed subject would be found again.
const MASTER_KEY: &str = "waypost-master-key";
/// Marks a stream that a restore has not filled yet.
pub(crate) const RESTORING: &str = "waypost-restoring";

/// How long a server may take to create what is missing, however slow its disk.
const CREATE_WITHIN: Duration = Duration::from_secs(30);

/// One stream and the epoch that positions in it name.
#[derive(Clone)]
pub(crate) struct LogStream {
    pub(crate) name: String,
    pub(crate) epoch: u32,
    /// Whether there are copies, which may lag behind the leader.
    pub(crate) replicated: bool,
    /// How long a command's read of it waits for an answer.
    pub(crate) timeout: ReadTimeout,
    pub(crate) stream: Stream,
}

impl LogStream {
    /// The epoch of the stream that this one was restored from.
    pub(crate) fn restored_from(&self) -> Option<u32> {
        epoch_of(&self.stream.cached_info().config, RESTORED_FROM)
    }
}

/// The three streams of the log.
#[derive(Clone)]
pub(crate) struct Streams {
    events: LogStream,
    locations: LogStream,
    deliveries: LogStream,
}

impl Streams {
    pub(crate) fn get(&self, log: Log) -> &LogStream {
        match log {
            Log::Events => &self.events,
            Log::Locations => &self.locations,
            Log::Deliveries => &self.deliveries,
        }
    }

    /// Creates what is missing, on a server and with a prefix that were checked.
    pub(crate) async fn prepare(
        context: &Context,
        settings: &LogSettings,
        subjects: &Subjects,
    ) -> Result<Self, Error> {
        let prepare = |log| prepare_stream(context, settings, subjects, log);
        Ok(Self {
            events: prepare(Log::Events).await?,
            locations: prepare(Log::Locations).await?,
            deliveries: prepare(Log::Deliveries).await?,
        })
    }
}

pub(crate) fn check_server(client: &Client) -> Result<(), Error> {
    let (major, minor, patch) = OLDEST_SERVER;
    if client.is_server_compatible(major, minor, patch) {
        return Ok(());
    }
    let found = client.server_info().version;
    Err(Error::Unfit(format!(
        "it is version {found}, {major}.{minor} or newer is needed"
    )))
}

/// The prefix becomes part of names and subjects.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), Error> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if prefix.len() <= 64 && prefix.bytes().all(fits) {
        return Ok(());
    }
    Err(Error::Unfit(format!(
        "the prefix {prefix:?} must be up to 64 characters of [A-Za-z0-9_-]"
    )))
}

/// A stream as it is created, but for its epoch.
pub(crate) fn wanted(settings: &LogSettings, subjects: &Subjects, log: Log) -> Config {
    let day = Duration::from_hours(24);
    let (name, days) = match log {
        Log::Events => ("EVENTS", 0),
        Log::Locations => ("LOCATIONS", settings.locations_days),
        Log::Deliveries => ("DELIVERIES", settings.deliveries_days),
    };
    Config {
        name: format!("{}{name}", settings.log_prefix),
        subjects: vec![subjects.all(log)],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        num_replicas: settings.log_replicas,
        max_age: day.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX)),
        allow_direct: true,
        allow_atomic_publish: true,
        // Appends are recognised by their expected sequence and event id; the server's memory of
        // message ids is neither needed nor durable.
        duplicate_window: Duration::from_millis(100),
        metadata: HashMap::from([(MASTER_KEY.to_owned(), subjects.master_key_mark())]),
        ..Config::default()
    }
}

async fn prepare_stream(
    context: &Context,
    settings: &LogSettings,
    subjects: &Subjects,
    log: Log,
) -> Result<LogStream, Error> {
    let mut wanted = wanted(settings, subjects, log);
    wanted.metadata.insert(EPOCH.to_owned(), new_epoch()?);
    if log == Log::Events {
        wanted.metadata.insert(BEGINS.to_owned(), "1".to_owned());
    }
    let name = wanted.name.clone();
    let stream = get_or_create(context, &wanted).await?;
    let kept = &stream.cached_info().config;
    check_kept(kept, &wanted).map_err(Error::Unfit)?;
    if kept.metadata.contains_key(RESTORING) {
        let again = "run `waypost restore` again";
        return Err(Error::Unfit(format!(
            "a restore of stream {name} has not ended: {again}"
        )));
    }
    let epoch = epoch_of(kept, EPOCH).ok_or_else(|| {
        Error::Unfit(format!(
            "stream {name} was not created by Waypost (it has no epoch)"
        ))
    })?;
    let first = stream.cached_info().state.first_sequence;
    let mut missing = check_beginning(log, kept, first)?;
    let master_key = subjects.master_key_mark();
    match kept.metadata.get(MASTER_KEY) {
        Some(found) if *found == master_key => {}
        Some(_) => return Err(Error::OtherMasterKey),
        // Created, or restored, by a version that did not mark it.
        None => missing.push((MASTER_KEY.to_owned(), master_key)),
    }
    if kept.max_age != wanted.max_age || !missing.is_empty() {
        let mut config = Config {
            max_age: wanted.max_age,
            ..kept.clone()
        };
        config.metadata.extend(missing);
        let updated = until_answered(|| context.update_stream(&config)).await;
        updated.map_err(|error| failed(&name, &error))?;
    }
    Ok(LogStream {
        name,
        epoch,
        replicated: wanted.num_replicas > 1,
        timeout: ReadTimeout::of(settings.timeout()),
        stream,
    })
}

/// Checks that a stream still begins where it may. A stream of events that does not record yet
/// where that is gets the mark for it.
fn check_beginning(log: Log, kept: &Config, first: u64) -> Result<Vec<(String, String)>, Error> {
    match begins(&kept.metadata) {
        Some(begins) if begins < first => Err(Error::Unfit(format!(
            "stream {} has lost its beginning: the events from {begins} to {} are gone. Put the \
             servers' data back from before that, or restore a backup",
            kept.name,
            first - 1
        ))),
        None if log == Log::Events => Ok(vec![(BEGINS.to_owned(), first.max(1).to_string())]),
        _ => Ok(Vec::new()),
    }
}

/// The stream as the server stores it: an old server silently drops what it does not know, so only
/// what it reports afterwards counts.
pub(crate) async fn get_or_create(context: &Context, wanted: &Config) -> Result<Stream, Error> {
    let stream = until_answered(|| async {
        let created = context.get_or_create_stream(wanted.clone()).await;
        let mut stream = match created {
            Ok(stream) => stream,
            // Another process may have been quicker, with an epoch of its own. If none was, the
            // reason is why this one could not.
            Err(error) => {
                let other = context.get_stream(&wanted.name).await;
                other.map_err(|_| error)?
            }
        };
        stream.info().await?;
        Ok::<_, CreateStreamError>(stream)
    });
    stream.await.map_err(|error| failed(&wanted.name, &error))
}

/// Creates or changes something, again while no answer comes in time: a server flushes that to
/// disk, which can take longer than a request may.
pub(crate) async fn until_answered<T, E, F>(create: impl Fn() -> F) -> Result<T, E>
where
    E: std::error::Error + 'static,
    F: Future<Output = Result<T, E>>,
{
    let by = Instant::now() + CREATE_WITHIN;
    loop {
        match create().await {
            Err(error) if is_late(&error) && Instant::now() < by => {}
            answered => return answered,
        }
    }
}

/// Whether no answer came in time. Of a bucket, the client says so in the error's source only.
fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| {
        let stream = cause.downcast_ref::<CreateStreamError>();
        let account = cause.downcast_ref::<AccountError>();
        stream.is_some_and(|error| error.kind() == CreateStreamErrorKind::TimedOut)
            || account.is_some_and(|error| error.kind() == AccountErrorKind::TimedOut)
    })
}

fn failed(name: &str, error: &dyn std::error::Error) -> Error {
    Error::Prepare {
        name: name.to_owned(),
        reason: error.to_string(),
    }
}

fn check_kept(kept: &Config, wanted: &Config) -> Result<(), String> {
    let name = &wanted.name;
    let needed = [
        ("allow_atomic", kept.allow_atomic_publish),
        ("allow_direct", kept.allow_direct),
        ("its subjects", kept.subjects == wanted.subjects),
        ("file storage", kept.storage == StorageType::File),
        (
            "retention by limits",
            kept.retention == RetentionPolicy::Limits,
        ),
        ("acknowledgements", !kept.no_ack),
        ("erasing of single messages", !kept.deny_delete),
    ];
    if let Some((what, _)) = needed.into_iter().find(|(_, is)| !is) {
        return Err(format!("stream {name} lacks {what}"));
    }
    let limited = |limit: i64| limit > 0;
    let limits = [
        ("messages", limited(kept.max_messages)),
        (
            "messages of a subject",
            limited(kept.max_messages_per_subject),
        ),
        ("bytes", limited(kept.max_bytes)),
        (
            "a message's size",
            limited(i64::from(kept.max_message_size)),
        ),
        (
            "age",
            kept.max_age != Duration::ZERO && wanted.max_age == Duration::ZERO,
        ),
    ];
    match limits.into_iter().find(|(_, is)| *is) {
        Some((what, _)) => Err(format!("stream {name} limits {what}: events would be lost")),
        None => Ok(()),
    }
}

/// Whether nothing was found because the stream does not exist.
pub(crate) fn is_missing(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(said)
        if said.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

pub(crate) fn new_epoch() -> Result<String, Error> {
    let mut bytes = [0; 4];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| {
        Error::Unfit("the operating system's random generator does not answer".to_owned())
    })?;
    Ok(epoch_text(u32::from_be_bytes(bytes)))
}

pub(crate) fn epoch_text(epoch: u32) -> String {
    format!("{epoch:08x}")
}

/// An epoch in a stream's metadata, by its key.
pub(crate) fn epoch_of(config: &Config, name: &str) -> Option<u32> {
    let text = config.metadata.get(name)?;
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};

    use super::until_answered;

    #[tokio::test]
    async fn what_a_slow_server_creates_is_waited_for_and_no_other_error_is() {
        let times = Cell::new(0);
        let created = async |late: u32, end: Result<(), CreateStreamErrorKind>| {
            times.set(0);
            let create = || async {
                times.set(times.get() + 1);
                let answer = if times.get() > late {
                    end.clone()
                } else {
                    Err(CreateStreamErrorKind::TimedOut)
                };
                answer.map_err(CreateStreamError::new)
            };
            until_answered(create).await.map_err(|error| error.kind())
        };
        assert_eq!(created(2, Ok(())).await, Ok(()));
        assert_eq!(times.get(), 3);
        let refusal = Err(CreateStreamErrorKind::InvalidStreamName);
        assert_eq!(created(0, refusal.clone()).await, refusal);
        assert_eq!(times.get(), 1);
    }
}
