//! The streams: made once, read back always.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use ring::rand::{SecureRandom as _, SystemRandom};
use schemas::Log;

use crate::subject::Subjects;
use crate::{Error, LogSettings};

/// The first version with atomic batches.
const OLDEST_SERVER: (i64, i64, i64) = (2, 12, 0);
const EPOCH: &str = "waypost-epoch";

/// One stream and the epoch that positions in it name.
#[derive(Clone)]
pub(crate) struct LogStream {
    pub(crate) name: String,
    pub(crate) epoch: u32,
    pub(crate) stream: Stream,
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

    pub(crate) async fn prepare(
        context: &Context,
        settings: &LogSettings,
        subjects: &Subjects,
    ) -> Result<Self, Error> {
        check_server(&context.client())?;
        let prepare = |log| prepare_stream(context, settings, subjects, log);
        Ok(Self {
            events: prepare(Log::Events).await?,
            locations: prepare(Log::Locations).await?,
            deliveries: prepare(Log::Deliveries).await?,
        })
    }
}

fn check_server(client: &Client) -> Result<(), Error> {
    let (major, minor, patch) = OLDEST_SERVER;
    if client.is_server_compatible(major, minor, patch) {
        return Ok(());
    }
    let found = client.server_info().version;
    Err(Error::Unfit(format!(
        "it is version {found}, {major}.{minor} or newer is needed"
    )))
}

fn wanted(settings: &LogSettings, subjects: &Subjects, log: Log) -> Config {
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
        ..Config::default()
    }
}

async fn prepare_stream(
    context: &Context,
    settings: &LogSettings,
    subjects: &Subjects,
    log: Log,
) -> Result<LogStream, Error> {
    let wanted = wanted(settings, subjects, log);
    let name = wanted.name.clone();
    let failed = |reason: String| Error::Prepare {
        name: name.clone(),
        reason,
    };
    let created = Config {
        metadata: HashMap::from([(EPOCH.to_owned(), new_epoch()?)]),
        ..wanted
    };
    let stream = context.get_or_create_stream(created.clone()).await;
    let mut stream = stream.map_err(|e| failed(e.to_string()))?;
    // An old server drops what it does not know without a word, so what it kept is what counts.
    let kept = &stream
        .info()
        .await
        .map_err(|e| failed(e.to_string()))?
        .config;
    check_kept(kept, &created).map_err(Error::Unfit)?;
    let epoch = kept
        .metadata
        .get(EPOCH)
        .and_then(|text| u32::from_str_radix(text, 16).ok());
    let epoch = epoch.ok_or_else(|| failed("it was not made by Waypost: no epoch".to_owned()))?;
    Ok(LogStream {
        name,
        epoch,
        stream,
    })
}

fn check_kept(kept: &Config, wanted: &Config) -> Result<(), String> {
    let name = &wanted.name;
    let lacks = |what: &str| Err(format!("stream {name} lacks {what}"));
    if !kept.allow_atomic_publish {
        return lacks("allow_atomic");
    }
    if !kept.allow_direct {
        return lacks("allow_direct");
    }
    if kept.subjects != wanted.subjects {
        return lacks("its subjects");
    }
    if kept.storage != StorageType::File || kept.retention != RetentionPolicy::Limits {
        return lacks("file storage with limits");
    }
    let unlimited = |limit: i64| limit <= 0;
    if !unlimited(kept.max_messages) || !unlimited(kept.max_bytes) {
        return Err(format!(
            "stream {name} has a limit on messages or bytes: facts would be lost"
        ));
    }
    if kept.max_age != Duration::ZERO && wanted.max_age == Duration::ZERO {
        return Err(format!(
            "stream {name} has a maximum age: facts would be lost"
        ));
    }
    Ok(())
}

fn new_epoch() -> Result<String, Error> {
    let mut bytes = [0; 4];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::Unfit("the system gives no random bytes".to_owned()))?;
    Ok(format!("{:08x}", u32::from_be_bytes(bytes)))
}
