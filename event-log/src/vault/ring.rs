//! The keys that wrap owners' keys: that of the master key, and those of the master keys that were
//! rotated away or will replace it.
//!
//! Once a master key was rotated, the bucket holds a record for each master key that opens it,
//! sealed by that key. Without a record a master key opens nothing.

use async_nats::jetstream::stream::RawMessageErrorKind;

use super::VaultError;
use super::cipher::{self, KEY_BYTES, Key};
use crate::{Bucket, Keyring};

pub(super) type Bytes = [u8; KEY_BYTES];

/// Prefix of the names of records; no owner's name begins with it.
pub(super) const RECORDS: &str = "master.";
/// The most records that are followed from one to the next.
const CHAIN: usize = 100;

/// Keys that a holder of a master key needs besides it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The key that names are made with: always that of the first master key.
    pub(super) names: Bytes,
    /// Replaces this key, while a rotation is in progress.
    pub(super) newer: Option<Bytes>,
    /// Earlier keys, newest first: a process that was slow may have used one of them.
    pub(super) older: Vec<Bytes>,
}

impl Record {
    /// The name of the record that this key opens.
    pub(super) fn name(wrapping: &Bytes) -> String {
        format!("{RECORDS}{}", cipher::mark(wrapping))
    }

    pub(super) fn seal(&self, wrapping: &Bytes) -> Result<Vec<u8>, VaultError> {
        let mut text = self.names.to_vec();
        text.push(u8::from(self.newer.is_some()));
        let others = self.newer.iter().chain(&self.older);
        others.for_each(|key| text.extend_from_slice(key));
        cipher::encrypt(&cipher::key(wrapping), &Self::name(wrapping), &text)
    }

    pub(super) fn open(wrapping: &Bytes, sealed: &[u8]) -> Result<Self, VaultError> {
        let name = Self::name(wrapping);
        let text = cipher::decrypt(&cipher::key(wrapping), &name, sealed.to_vec())?;
        let (names, text) = text.split_first_chunk().ok_or(VaultError::Broken)?;
        let (has_newer, text) = text.split_first().ok_or(VaultError::Broken)?;
        let (keys, rest) = text.as_chunks::<KEY_BYTES>();
        let (newer, older) = if *has_newer == 0 {
            (None, keys)
        } else {
            let (newer, older) = keys.split_first().ok_or(VaultError::Broken)?;
            (Some(*newer), older)
        };
        if !rest.is_empty() {
            return Err(VaultError::Broken);
        }
        Ok(Self {
            names: *names,
            newer,
            older: older.to_vec(),
        })
    }

    /// The record that this key opens, if there is one.
    pub(super) async fn read(
        bucket: &Bucket,
        wrapping: &Bytes,
    ) -> Result<Option<Self>, VaultError> {
        let sealed = bucket.get(&Self::name(wrapping)).await;
        let sealed = sealed.map_err(VaultError::Unavailable)?;
        sealed
            .map(|sealed| Self::open(wrapping, &sealed))
            .transpose()
    }
}

/// The keyring of a master key according to one of these records, each with the name it is stored
/// under; `None` if none is this master key's.
pub(crate) fn named_by(keyring: &Keyring, records: &[(String, Vec<u8>)]) -> Option<Keyring> {
    let wrapping = keyring.wrapping_key();
    let name = Record::name(wrapping);
    let mine = records.iter().filter(|(found, _)| *found == name);
    let mut opened = mine.filter_map(|(_, sealed)| Record::open(wrapping, sealed).ok());
    // Every record of a key has the same names.
    opened
        .next()
        .map(|record| keyring.with_names(&record.names))
}

/// The keys that a process knows.
#[derive(Clone)]
pub(super) struct Ring {
    /// That of the master key that the process was started with.
    pub(super) own: Bytes,
    /// The key used for wrapping.
    pub(super) current: Bytes,
    /// All keys, the current one first.
    keys: Vec<Bytes>,
}

impl Ring {
    /// Before any rotation.
    pub(super) fn of(keyring: &Keyring) -> Self {
        let own = *keyring.wrapping_key();
        Self {
            own,
            current: own,
            keys: vec![own],
        }
    }

    /// Reads the ring from the bucket's records, and the keyring with the names of the first master
    /// key; `None` if this master key opens nothing according to them.
    pub(super) async fn read(
        bucket: &Bucket,
        keyring: &Keyring,
    ) -> Result<Option<(Self, Keyring)>, VaultError> {
        let mut ring = Self::of(keyring);
        match Record::read(bucket, &ring.own).await? {
            Some(record) => {
                let keyring = keyring.with_names(&record.names);
                ring.follow(bucket, record).await?;
                Ok(Some((ring, keyring)))
            }
            None if has_records(bucket).await? => Ok(None),
            None => Ok(Some((ring, keyring.clone()))),
        }
    }

    /// The ring, if it has changed since. If this process missed a whole rotation, its master key
    /// is read again from where `keyring` has it from.
    ///
    /// # Errors
    /// Also if another master key replaced this one, and is not found there.
    pub(super) async fn renewed(
        &self,
        bucket: &Bucket,
        keyring: &Keyring,
    ) -> Result<Option<Self>, VaultError> {
        if let Some(record) = Record::read(bucket, &self.current).await? {
            let mut ring = self.clone();
            ring.follow(bucket, record).await?;
            return Ok((ring.current != self.current).then_some(ring));
        }
        if !has_records(bucket).await? {
            return Ok(None);
        }
        let again = keyring.read_again().ok_or_else(locked_out)?;
        let renewed = Self::read(bucket, &again).await?;
        let (ring, _) = renewed.ok_or_else(locked_out)?;
        Ok(Some(ring))
    }

    /// Follows each key's record to the newest key.
    async fn follow(&mut self, bucket: &Bucket, first: Record) -> Result<(), VaultError> {
        let mut next = Some(first);
        for _ in 0..CHAIN {
            let Some(record) = next else { break };
            self.keys.extend(&record.older);
            let Some(newer) = record.newer else { break };
            self.current = newer;
            self.keys.insert(0, newer);
            next = Record::read(bucket, &newer).await?;
        }
        let mut seen = std::collections::HashSet::new();
        self.keys.retain(|key| seen.insert(*key));
        Ok(())
    }

    pub(super) fn wrap(&self, name: &str, key: &Bytes) -> Result<Vec<u8>, VaultError> {
        cipher::encrypt(&cipher::key(&self.current), name, key)
    }

    /// The key that was wrapped, and whether by the current one; `None` if no key opens it.
    pub(super) fn unwrap(&self, name: &str, wrapped: &[u8]) -> Option<(Bytes, bool)> {
        self.keys.iter().find_map(|wrapping| {
            let key: Key = cipher::key(wrapping);
            let bytes = cipher::decrypt(&key, name, wrapped.to_vec()).ok()?;
            Some((bytes.try_into().ok()?, *wrapping == self.current))
        })
    }
}

/// A restart of the process resolves it.
fn locked_out() -> VaultError {
    let reason = "another master key has taken the place of this process': start it with that one";
    VaultError::Unavailable(reason.to_owned())
}

async fn has_records(bucket: &Bucket) -> Result<bool, VaultError> {
    let subject = format!("{}{RECORDS}>", bucket.prefix);
    let first = bucket.stream.get_first_raw_message_by_subject(&subject, 1);
    match first.await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(false),
        Err(error) => Err(VaultError::Unavailable(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_opens_for_its_master_key_alone(
            names: Bytes,
            newer: Option<Bytes>,
            older in proptest::collection::vec(any::<Bytes>(), 0..4),
            mine: Bytes,
            other: Bytes,
        ) {
            prop_assume!(mine != other);
            let record = Record { names, newer, older };
            let sealed = record.seal(&mine).unwrap();
            prop_assert!(Record::open(&mine, &sealed).unwrap() == record);
            prop_assert!(Record::open(&other, &sealed).is_err());
        }
    }
}
