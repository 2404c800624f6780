//! How every checkpoint is stored: a version, the position in the log, and the body, one after the
//! other in the encoding of `postcard`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the envelope.
const VERSION: u8 = 1;

/// What precedes a body.
#[derive(Serialize, Deserialize)]
struct Head {
    /// Of the stream that the position is in: in another one it means nothing.
    epoch: u32,
    through: u64,
    /// The version of the body's form.
    form: u8,
}

/// Why stored data cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Its form is that of another version.
    #[error("another version of Waypost wrote it, in a form that this one does not know")]
    Unknown,
    /// Its position is in another stream.
    #[error("it is of another log")]
    OtherLog,
    /// It is not a checkpoint.
    #[error("it is damaged")]
    Damaged,
}

/// Encodes a body that holds for the stream of `epoch` up to the sequence `through`. `form` is the
/// version of the body's own form.
///
/// # Errors
/// If the body cannot be encoded.
pub fn encode(epoch: u32, through: u64, form: u8, body: impl Serialize) -> Result<Vec<u8>, String> {
    let head = Head {
        epoch,
        through,
        form,
    };
    postcard::to_extend(&(VERSION, head, body), Vec::new()).map_err(|error| error.to_string())
}

/// Returns the sequence and the body that [`encode`] stored in the same form. `carries_on` says
/// whether checkpoints of an epoch hold for the current log.
///
/// # Errors
/// If it cannot be used.
pub fn decode<T: DeserializeOwned>(
    stored: &[u8],
    form: u8,
    carries_on: impl FnOnce(u32) -> bool,
) -> Result<(u64, T), Unusable> {
    let (head, rest) = head(stored)?;
    if !carries_on(head.epoch) {
        return Err(Unusable::OtherLog);
    }
    if head.form != form {
        return Err(Unusable::Unknown);
    }
    match take(rest)? {
        (body, []) => Ok((head.through, body)),
        _ => Err(Unusable::Damaged),
    }
}

fn head(stored: &[u8]) -> Result<(Head, &[u8]), Unusable> {
    let (version, rest) = stored.split_first().ok_or(Unusable::Damaged)?;
    if *version == VERSION {
        take(rest)
    } else {
        Err(Unusable::Unknown)
    }
}

fn take<'s, T: Deserialize<'s>>(stored: &'s [u8]) -> Result<(T, &'s [u8]), Unusable> {
    postcard::take_from_bytes(stored).map_err(|_| Unusable::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EPOCH: u32 = 7;
    const FORM: u8 = 1;

    fn stored(through: u64, text: &str) -> Vec<u8> {
        encode(EPOCH, through, FORM, text).unwrap()
    }

    fn read(stored: &[u8]) -> Result<(u64, String), Unusable> {
        decode(stored, FORM, |epoch| epoch == EPOCH)
    }

    proptest! {
        #[test]
        fn a_checkpoint_survives_being_stored(through: u64, text in "\\PC{0,300}") {
            prop_assert_eq!(read(&stored(through, &text)), Ok((through, text)));
        }

        #[test]
        fn one_that_is_cut_or_goes_on_is_damaged(through: u64, text in "\\PC{0,9}", cut: prop::sample::Index) {
            let mut stored = stored(through, &text);
            let kept = cut.index(stored.len());
            prop_assert_eq!(read(&stored[..kept]), Err(Unusable::Damaged));
            stored.push(0);
            prop_assert_eq!(read(&stored), Err(Unusable::Damaged));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
            let _ = read(&[&[VERSION], &bytes[..]].concat());
        }

        #[test]
        fn what_another_version_wrote_is_not_taken(version: u8, form: u8, text in "\\PC{0,9}") {
            let other = encode(EPOCH, 1, form, &text).unwrap();
            prop_assert_eq!(read(&other) == Err(Unusable::Unknown), form != FORM);
            let mut other = stored(1, &text);
            other[0] = version;
            prop_assert_eq!(read(&other) == Err(Unusable::Unknown), version != VERSION);
        }
    }

    #[test]
    fn places_mean_nothing_in_another_log() {
        let stored = stored(1, "a");
        let read = decode::<String>(&stored, FORM, |epoch| epoch != EPOCH);
        assert_eq!(read, Err(Unusable::OtherLog));
    }

    /// What is stored today must be readable by every later version.
    #[test]
    fn the_form_stays_what_it_is() {
        let recorded = [1, 0xd2, 0x85, 0xd8, 0xcc, 0x04, 200, 1, 1, 2, b'o', b'k'];
        assert_eq!(encode(1_234_567_890, 200, FORM, "ok").unwrap(), recorded);
    }
}
