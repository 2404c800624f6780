//! Every event of the log, read from it directly.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use event_log::{Binding, EventLog, Item, ReadError, TailError, VaultError};
use schemas::{AggregateType, Event, Log, OrgId, Recorded, Sealed, StreamId};
use serde_json::{Value, json};

use super::connected::Connected;

/// The logs, in the order in which they are read.
const LOGS: [Log; 3] = [Log::Events, Log::Locations, Log::Deliveries];
/// Number of events read at a time.
const AT_ONCE: usize = 1_000;
/// Attempts at opening sealed data, on a busy machine.
const UNSEALING: u32 = 20;

/// An event as the checker knows it: its data as JSON, with sealed data opened.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) log: Log,
    pub(crate) sequence: u64,
    pub(crate) org: String,
    pub(crate) aggregate: AggregateType,
    pub(crate) stream: String,
    pub(crate) id: String,
    pub(crate) time: DateTime<Utc>,
    pub(crate) kind: String,
    pub(crate) public: bool,
    pub(crate) data: Value,
    /// The trace that it belongs to.
    pub(crate) trace: Option<u128>,
    /// The event that it follows from; `None` if an outside request led to it.
    pub(crate) cause: Option<String>,
}

impl Fact {
    /// Its description in reports.
    pub(crate) fn place(&self) -> String {
        format!(
            "{} at {:?} {} ({}/{})",
            self.kind, self.log, self.sequence, self.org, self.stream
        )
    }

    /// A note among the claims, as of an invite or of a run about a person: any number are beside
    /// each other.
    pub(crate) fn is_note(&self) -> bool {
        let holder = self.data["holder"].as_str();
        self.aggregate == AggregateType::Claim && holder.is_some_and(|holder| holder.contains(' '))
    }

    /// The person it is about, if any.
    pub(crate) fn person(&self) -> Option<u64> {
        let named = |name: &str| self.data[name].as_u64();
        named("user_id").or_else(|| named("accountId"))
    }

    /// When what it reports of a person was true.
    pub(crate) fn recorded_at(&self) -> Option<DateTime<Utc>> {
        let text = self.data["recorded_at"].as_str()?;
        Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc())
    }
}

/// Everything in the log, and where to continue reading.
pub(crate) struct Facts {
    log: EventLog,
    /// Position up to which each log has been read.
    read_to: HashMap<Log, u64>,
    pub(crate) all: Vec<Fact>,
    /// Position up to which events stem from creating the world.
    pub(crate) made_up_to: HashMap<Log, u64>,
    connected: Connected,
    /// Persons who were forgotten.
    forgotten: HashSet<u64>,
    /// Runs that were forgotten with them.
    forgotten_runs: HashSet<String>,
    /// What could not be read: should be empty.
    pub(crate) unreadable: Vec<String>,
}

impl Facts {
    pub(crate) async fn open(log: EventLog) -> Self {
        let mut made_up_to = HashMap::new();
        for one in LOGS {
            let end = log.end(one).await.expect("the log's end");
            made_up_to.insert(one, end.sequence());
        }
        Self {
            log,
            read_to: HashMap::new(),
            all: Vec::new(),
            made_up_to,
            connected: Connected::default(),
            forgotten: HashSet::new(),
            forgotten_runs: HashSet::new(),
            unreadable: Vec::new(),
        }
    }

    /// Reads on to the log's current end; returns whether there was anything new.
    pub(crate) async fn advance(&mut self) -> bool {
        let before = self.read_to.clone();
        for log in LOGS {
            if let Err(error) = self.read(log).await {
                self.unreadable.push(format!("{log:?}: {error}"));
            }
        }
        self.read_to != before
    }

    /// A log that does not answer now is read the next time.
    async fn read(&mut self, log: Log) -> Result<(), TailError> {
        let Ok(end) = self.log.end(log).await else {
            return Ok(());
        };
        let after = self.read_to.get(&log).copied().unwrap_or_default();
        if end.sequence() <= after {
            return Ok(());
        }
        let Ok(mut tail) = self.log.tail(log, after, &[]).await else {
            return Ok(());
        };
        // The log's last positions may have been erased: they are not delivered.
        while tail.last_sequence() < end.sequence() && !tail.caught_up() {
            let batch = tail.next(AT_ONCE).await?;
            self.read_to.insert(log, batch.last_sequence);
            for item in batch.items {
                match item {
                    Item::Event(recorded) => {
                        let fact = self.fact(log, &recorded).await;
                        self.connected.note(&fact);
                        match fact.kind.as_str() {
                            "account.forgotten" => self.forgotten.extend(fact.person()),
                            "run.forgotten" => self.forget_run(&fact),
                            _ => {}
                        }
                        self.all.push(fact);
                    }
                    Item::Undecodable {
                        sequence, reason, ..
                    } => {
                        self.unreadable
                            .push(format!("{log:?} {sequence}: {reason}"));
                    }
                }
            }
        }
        let read_to = tail.last_sequence().max(end.sequence());
        self.read_to.insert(log, read_to);
        Ok(())
    }

    /// Drops what was read of a run before it was erased.
    fn forget_run(&mut self, forgotten: &Fact) {
        let of_it = |fact: &Fact| {
            fact.aggregate == AggregateType::Run
                && fact.stream == forgotten.stream
                && fact.org == forgotten.org
        };
        self.all.retain(|fact| !of_it(fact));
        self.forgotten_runs.insert(forgotten.stream.clone());
    }

    async fn fact(&mut self, log: Log, recorded: &Recorded) -> Fact {
        let context = &recorded.context;
        let trace = context.traceparent.as_ref();
        let trace = trace.and_then(|parent| u128::from_str_radix(parent.trace_id(), 16).ok());
        // A request names itself as its own cause.
        let cause = context.causation_id.clone();
        let cause = cause.filter(|cause| context.correlation_id.as_ref() != Some(cause));
        let encoded = recorded.event.encode().unwrap_or_default();
        let mut data = serde_json::from_slice(&encoded).unwrap_or_default();
        if let Err(error) = self.open_sealed(&recorded.event, &mut data).await {
            let (place, name) = (recorded.sequence, recorded.event.name());
            self.unreadable.push(format!(
                "{log:?} {place}, what is sealed in {name}: {error}"
            ));
        }
        Fact {
            log,
            sequence: recorded.sequence,
            org: recorded.stream.org.to_string(),
            aggregate: recorded.stream.aggregate,
            stream: recorded.stream.id.clone(),
            id: recorded.id.to_string(),
            time: recorded.time,
            kind: recorded.event.name().into_owned(),
            public: recorded.event.visibility() == schemas::Visibility::Public,
            data,
            trace,
            cause,
        }
    }

    async fn open_sealed(&self, event: &Event, data: &mut Value) -> Result<(), VaultError> {
        let opened = match event {
            Event::AccountRegistered(new) => {
                let (name, email) = (
                    Binding::Name(new.account_id),
                    Binding::Email(new.account_id),
                );
                json!({"name": self.open_one(&name, &new.name).await?,
                    "email": self.open_one(&email, &new.email).await?})
            }
            Event::CircleCreated(new) => {
                let binding = Binding::CircleName(new.owner.clone(), new.circle_id.clone());
                json!({"name": self.open_one(&binding, &new.name).await?})
            }
            Event::CirclePlaceAdded(new) => {
                let binding = Binding::WatchedPlace(new.by, new.place_id.clone());
                self.open_object(&binding, &new.place).await?
            }
            other => match Binding::of_personal(other) {
                Some((binding, sealed)) => self.open_object(&binding, sealed).await?,
                None => return Ok(()),
            },
        };
        if let (Value::Object(fields), Value::Object(opened)) = (data, opened) {
            fields.extend(opened);
        }
        Ok(())
    }

    /// `None` if the person it belongs to was forgotten.
    async fn open_one(
        &self,
        binding: &Binding,
        sealed: &Sealed,
    ) -> Result<Option<String>, VaultError> {
        let mut tries = 0;
        loop {
            match self.log.vault().unseal(binding, sealed).await {
                Ok(text) => return Ok(Some(text)),
                Err(VaultError::Forgotten) => return Ok(None),
                Err(error) if tries == UNSEALING || !error.passes() => return Err(error),
                Err(_) => tries += 1,
            }
        }
    }

    async fn open_object(&self, binding: &Binding, sealed: &Sealed) -> Result<Value, VaultError> {
        let opened = self.open_one(binding, sealed).await?.unwrap_or_default();
        Ok(serde_json::from_str(&opened).unwrap_or_default())
    }

    /// Whether a position given to a client is after everything that has been read.
    pub(crate) fn is_later(&self, position: &str) -> bool {
        let position = self.log.parse_position(position);
        position.is_ok_and(|position| {
            let read_to = self.read_to.get(&position.log());
            read_to.is_some_and(|end| position.sequence() > *end)
        })
    }

    /// The position of the last event read from a log: only erased positions follow it.
    pub(crate) fn end(&self, log: Log) -> u64 {
        let last = self.of(log).last();
        last.map_or(0, |fact| fact.sequence)
    }

    /// The events of one log.
    pub(crate) fn of(&self, log: Log) -> impl Iterator<Item = &Fact> {
        self.all.iter().filter(move |fact| fact.log == log)
    }

    /// Whether it is about a forgotten person: its contents are no longer known.
    pub(crate) fn is_of_the_forgotten(&self, fact: &Fact) -> bool {
        let person = fact.person();
        person.is_some_and(|person| self.forgotten.contains(&person))
    }

    /// Reads how many events are left of an event's stream, at most a page of them.
    pub(crate) async fn count_left(&self, fact: &Fact) -> Result<usize, ReadError> {
        let org = OrgId::from(fact.org.as_str());
        let stream = StreamId::new(&org, fact.aggregate, &fact.stream);
        Ok(self.log.first_page(&stream).await?.len())
    }

    /// Whether a run was forgotten with a person: its events are erased.
    pub(crate) fn is_forgotten_run(&self, run: &str) -> bool {
        self.forgotten_runs.contains(run)
    }

    /// Whether its cause may be erased: an event about a forgotten person, or of a run that was
    /// forgotten. An attempt at a delivery names neither.
    pub(crate) fn may_outlive_its_cause(&self, fact: &Fact) -> bool {
        let told = fact.data["type"].as_str().unwrap_or_default();
        let delivers = |kinds: &[&str]| {
            let kind = told.split_once('.').map(|(kind, _)| kind);
            fact.kind.starts_with("delivery.") && kind.is_some_and(|kind| kinds.contains(&kind))
        };
        let of_somebody = delivers(&["location", "place", "sos"]) && !self.forgotten.is_empty();
        let of_a_run = delivers(&["run", "workflow", "custom"]) && !self.forgotten_runs.is_empty();
        self.is_of_the_forgotten(fact) || of_somebody || of_a_run
    }

    /// Whether an organization may not be sent it any more: its person hides, which withholds
    /// positions and places, or has left, which also withholds calls for help, or was forgotten.
    pub(crate) fn may_be_withheld(&self, fact: &Fact) -> bool {
        if self.is_of_the_forgotten(fact) {
            return true;
        }
        match fact.kind.split_once('.') {
            Some(("place" | "location", _)) => true,
            Some(("sos", _)) => !self.connected.ever_since(fact),
            _ => false,
        }
    }

    /// Whether it was there before the run began.
    pub(crate) fn is_of_the_making(&self, fact: &Fact) -> bool {
        self.made_up_to
            .get(&fact.log)
            .is_some_and(|end| fact.sequence <= *end)
    }
}
