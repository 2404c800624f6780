//! Rotating the master key: every owner's key is rewrapped while all services keep running.
//!
//! 1. [`Rotation::begin`] leaves a record for the old key and one for the new: from here on a
//!    holder of either opens everything.
//! 2. [`Rotation::wrap_all`] wraps owners' keys by the new one, and erases the old wraps.
//! 3. [`Rotation::end`] erases the old key's record: it no longer opens anything.
//!
//! Each may be repeated, and each may be interrupted at any instant.

use async_nats::jetstream::kv::UpdateErrorKind;
use async_nats::jetstream::stream::RawMessageErrorKind;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::VaultError;
use super::keys::Keys;
use super::ring::{RECORDS, Record, Ring};
use crate::read::{Found, Most, Start, Stored, StreamReader};
use crate::streams::LogStream;
use crate::{EventLog, Keyring};

/// Messages read at once, and how many of their keys are wrapped concurrently.
const PAGE: usize = 500;
const SIDE_BY_SIDE: usize = 16;
/// The previous wrap of an owner's key stays beside the newest until it is overwritten.
const WRAPS: i64 = 2;

/// Why a master key is not rotated.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// Another one is in progress.
    #[error(
        "a rotation to another master key is in progress: finish it with the key that it was started with"
    )]
    UnderWay,
    /// The old key must not be locked out by a process that does not hold the new one.
    #[error("the rotation can only be ended with the new master key")]
    NotHeld,
    /// The vault does not answer.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// How far a rotation has come, as this process' master key sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// None is in progress.
    None,
    /// One is in progress, and this process was started with the old key.
    Begun,
    /// One is in progress, and this process was started with the new key.
    Ending,
}

/// Reports how many keys were looked at, of how many; called often.
pub type TellWraps<'t> = &'t (dyn Fn(u64, u64) + Sync);

/// The steps that change the master key.
pub struct Rotation<'l> {
    keys: &'l Keys,
    stream: LogStream,
}

/// The result for an owner's key.
enum Wrap {
    Current,
    Renewed,
    /// Not a wrap, one that was replaced meanwhile, or one that no known key opens.
    Nothing,
}

impl EventLog {
    /// The steps that change the master key.
    pub fn rotation(&self) -> Rotation<'_> {
        Rotation {
            keys: self.vault().keys(),
            stream: self.keys_stream(),
        }
    }
}

impl Rotation<'_> {
    /// How far it has come.
    pub async fn stage(&self) -> Result<Stage, VaultError> {
        let ring = self.keys.renewed_ring().await?;
        if ring.own != ring.current {
            return Ok(Stage::Begun);
        }
        let mine = Record::name(&ring.own);
        let others = self.records().await?;
        let others = others.iter().any(|(name, _)| *name != mine);
        Ok(if others { Stage::Ending } else { Stage::None })
    }

    /// Begins: from now on both master keys open everything.
    pub async fn begin(&self, new: &Keyring) -> Result<(), RotationError> {
        let ring = self.keys.renewed_ring().await?;
        let (old, new) = (ring.own, *new.wrapping_key());
        if new == old {
            return Ok(());
        }
        self.keep_wraps(WRAPS).await?;
        let bucket = self.keys.bucket();
        let found = Record::read(bucket, &old).await?;
        let older = found.as_ref().map_or(vec![], |found| found.older.clone());
        let names = *self.keys.names();
        match found.and_then(|found| found.newer) {
            Some(newer) if newer != new => return Err(RotationError::UnderWay),
            Some(_) => {}
            None => {
                let (newer, older) = (Some(new), older.clone());
                self.put(
                    &old,
                    Record {
                        names,
                        newer,
                        older,
                    },
                )
                .await?;
            }
        }
        // Not before the old key's: in between, the old key would open nothing.
        if Record::read(bucket, &new).await?.is_none() {
            let (newer, older) = (None, [vec![old], older].concat());
            self.put(
                &new,
                Record {
                    names,
                    newer,
                    older,
                },
            )
            .await?;
        }
        self.keys.renewed_ring().await?;
        Ok(())
    }

    /// Wraps all owners' keys by the new master key; returns how many there are.
    pub async fn wrap_all(&self, tell: TellWraps<'_>) -> Result<u64, RotationError> {
        loop {
            let (wrapped, renewed) = self.pass(tell).await?;
            // A process that did not know the new key yet may have wrapped by the old one.
            if renewed == 0 {
                return Ok(wrapped);
            }
        }
    }

    /// Ends: the old master key no longer opens anything. Only with the new one.
    pub async fn end(&self, tell: TellWraps<'_>) -> Result<u64, RotationError> {
        let ring = self.keys.renewed_ring().await?;
        if ring.own != ring.current {
            return Err(RotationError::NotHeld);
        }
        let wrapped = self.wrap_all(tell).await?;
        let mine = Record::name(&ring.own);
        let found = self.records().await?;
        let kept = found.iter().rposition(|(name, _)| *name == mine);
        for (at, (_, sequence)) in found.iter().enumerate() {
            if Some(at) != kept {
                self.erase(*sequence).await?;
            }
        }
        self.keep_wraps(1).await?;
        Ok(wrapped)
    }

    /// Looks at every owner's key once; returns how many are wrapped as they should be, and how
    /// many of them were not before.
    async fn pass(&self, tell: TellWraps<'_>) -> Result<(u64, u64), VaultError> {
        let ring = self.keys.renewed_ring().await?;
        let info = self.stream.stream.get_info().await.map_err(unavailable)?;
        let of = info.state.messages;
        let (mut after, mut wrapped, mut renewed) = (0, 0, 0);
        loop {
            let found = self.page(after, ">").await?.messages;
            let Some(last) = found.last() else {
                return Ok((wrapped, renewed));
            };
            after = last.sequence;
            let mut wraps = stream::iter(found)
                .map(|stored| self.renew(&ring, stored))
                .buffer_unordered(SIDE_BY_SIDE);
            while let Some(wrap) = wraps.try_next().await? {
                match wrap {
                    // A renewed one is met again further on.
                    Wrap::Current => wrapped += 1,
                    Wrap::Renewed => renewed += 1,
                    Wrap::Nothing => {}
                }
                tell(wrapped.min(of), of);
            }
        }
    }

    async fn renew(&self, ring: &Ring, stored: Stored) -> Result<Wrap, VaultError> {
        let (bucket, name) = (self.keys.bucket(), self.name(&stored));
        if name.starts_with(RECORDS) || stored.payload.is_empty() {
            return Ok(Wrap::Nothing);
        }
        let Some((key, current)) = ring.unwrap(name, &stored.payload) else {
            tracing::warn!(
                name,
                "No known master key opens this owner's key: it stays as it is"
            );
            return Ok(Wrap::Nothing);
        };
        if current {
            return Ok(Wrap::Current);
        }
        let wrapped = ring.wrap(name, &key)?;
        // Fails if the owner was forgotten meanwhile, or if a later wrap exists already.
        let put = bucket.update(name, wrapped.into(), stored.sequence).await;
        let renewed = match put {
            Ok(_) => Wrap::Renewed,
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Wrap::Nothing,
            Err(error) => return Err(unavailable(error)),
        };
        self.erase(stored.sequence).await?;
        Ok(renewed)
    }

    /// Overwrites the message on the server's disk.
    async fn erase(&self, sequence: u64) -> Result<(), VaultError> {
        let stream = &self.stream.stream;
        let Err(error) = stream.delete_message(sequence).await else {
            return Ok(());
        };
        match stream.get_raw_message(sequence).await {
            Err(gone) if gone.kind() == RawMessageErrorKind::NoMessageFound => Ok(()),
            _ => Err(unavailable(error)),
        }
    }

    async fn put(&self, wrapping: &[u8; 32], record: Record) -> Result<(), VaultError> {
        let sealed = record.seal(wrapping)?;
        let put = self
            .keys
            .bucket()
            .put(Record::name(wrapping), sealed.into());
        put.await.map(drop).map_err(unavailable)
    }

    /// The records' names and sequences, oldest first.
    async fn records(&self) -> Result<Vec<(String, u64)>, VaultError> {
        let found = self.all_records().await?;
        let found = found.iter();
        let named = found.map(|stored| (self.name(stored).to_owned(), stored.sequence));
        Ok(named.collect())
    }

    /// The records as stored in the bucket, with their names, oldest first.
    pub(crate) async fn sealed_records(&self) -> Result<Vec<(String, Vec<u8>)>, VaultError> {
        let found = self.all_records().await?;
        let found = found.iter();
        let sealed = found.map(|stored| (self.name(stored).to_owned(), stored.payload.to_vec()));
        Ok(sealed.collect())
    }

    /// All records, including those that a copy of the stream has not received yet.
    async fn all_records(&self) -> Result<Vec<Stored>, VaultError> {
        let (names, mut records) = (format!("{RECORDS}>"), Vec::new());
        let mut after = 0;
        loop {
            let found = self.page(after, &names).await?;
            records.extend(found.messages);
            match records.last() {
                Some(last) if !found.is_complete => after = last.sequence,
                _ => return Ok(records),
            }
        }
    }

    fn name<'s>(&self, stored: &'s Stored) -> &'s str {
        let subject = stored.subject.as_str();
        subject
            .strip_prefix(&self.keys.bucket().prefix)
            .unwrap_or(subject)
    }

    async fn page(&self, after: u64, names: &str) -> Result<Found, VaultError> {
        let subject = format!("{}{names}", self.keys.bucket().prefix);
        let reader = StreamReader::new(self.keys.context(), &self.stream);
        let most = Most {
            messages: PAGE,
            ..Most::BATCH
        };
        let found = reader.read(&subject, Start::After(after), most).await;
        found.map_err(unavailable)
    }

    /// Sets how many values of a name the bucket keeps.
    async fn keep_wraps(&self, count: i64) -> Result<(), VaultError> {
        let info = self.stream.stream.get_info().await.map_err(unavailable)?;
        let mut config = info.config;
        if config.max_messages_per_subject != count {
            config.max_messages_per_subject = count;
            let updated = self.keys.context().update_stream(&config).await;
            updated.map_err(unavailable)?;
        }
        Ok(())
    }
}

fn unavailable(error: impl std::fmt::Display) -> VaultError {
    VaultError::Unavailable(error.to_string())
}
