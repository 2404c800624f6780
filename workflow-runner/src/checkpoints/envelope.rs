//! How every checkpoint is stored: a version, the place in the log, and what its part of the runner
//! makes of it, one after the other in the encoding of `postcard`.

use serde::{Deserialize, Serialize};

use super::Checkpoint;

/// The version of all this.
const VERSION: u8 = 1;

/// What stands before a body.
#[derive(Serialize, Deserialize)]
struct Head {
    /// Of the stream that the place is in: in another one it means nothing.
    epoch: u32,
    through: u64,
    /// The version of the body's form.
    form: u8,
}

/// Why nothing can be taken from what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error("another version of Waypost wrote it, in a form that this one does not know")]
    Unknown,
    #[error("it is of another log")]
    OtherLog,
    #[error("it is damaged")]
    Damaged,
}

pub(super) fn encode<T: Checkpoint>(checkpoint: &T, epoch: u32) -> Result<Vec<u8>, String> {
    wrap(epoch, checkpoint.through(), T::FORM, checkpoint.body())
}

pub(super) fn wrap(
    epoch: u32,
    through: u64,
    form: u8,
    body: impl Serialize,
) -> Result<Vec<u8>, String> {
    let head = Head {
        epoch,
        through,
        form,
    };
    postcard::to_extend(&(VERSION, head, body), Vec::new()).map_err(|error| error.to_string())
}

/// Reads one of whose epoch `carries_on` says whether it holds for the log as it is now.
pub(super) fn decode<T: Checkpoint>(
    stored: &[u8],
    carries_on: impl FnOnce(u32) -> bool,
) -> Result<T, Unusable> {
    let (version, rest) = stored.split_first().ok_or(Unusable::Damaged)?;
    if *version != VERSION {
        return Err(Unusable::Unknown);
    }
    let (head, rest) = take::<Head>(rest)?;
    if !carries_on(head.epoch) {
        return Err(Unusable::OtherLog);
    }
    if head.form != T::FORM {
        return Err(Unusable::Unknown);
    }
    match take(rest)? {
        (body, []) => T::new(head.through, body).ok_or(Unusable::Damaged),
        _ => Err(Unusable::Damaged),
    }
}

fn take<'s, T: Deserialize<'s>>(stored: &'s [u8]) -> Result<(T, &'s [u8]), Unusable> {
    postcard::take_from_bytes(stored).map_err(|_| Unusable::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::Text;
    use super::*;

    const EPOCH: u32 = 7;

    fn stored(text: &Text) -> Vec<u8> {
        encode(text, EPOCH).unwrap()
    }

    fn is_ours(epoch: u32) -> bool {
        epoch == EPOCH
    }

    proptest! {
        #[test]
        fn a_checkpoint_survives_being_stored(mark: u8, text in "\\PC{0,300}") {
            let text = Text(mark, text);
            prop_assert_eq!(decode(&stored(&text), is_ours), Ok(text));
        }

        #[test]
        fn one_that_is_cut_or_goes_on_is_damaged(mark: u8, text in "\\PC{0,9}", cut: prop::sample::Index) {
            let mut stored = stored(&Text(mark, text));
            let kept = cut.index(stored.len());
            prop_assert_eq!(decode::<Text>(&stored[..kept], is_ours), Err(Unusable::Damaged));
            stored.push(0);
            prop_assert_eq!(decode::<Text>(&stored, is_ours), Err(Unusable::Damaged));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = decode::<Text>(&bytes, |_| true);
            let _ = decode::<Text>(&[&[VERSION], &bytes[..]].concat(), |_| true);
        }

        #[test]
        fn what_another_version_wrote_is_not_taken(version: u8, form: u8, text in "\\PC{0,9}") {
            let other = wrap(EPOCH, 1, form, &text).unwrap();
            let is_known = form == Text::FORM;
            let read = decode::<Text>(&other, is_ours);
            prop_assert_eq!(read == Err(Unusable::Unknown), !is_known);
            let mut other = stored(&Text(1, text));
            other[0] = version;
            let read = decode::<Text>(&other, is_ours);
            prop_assert_eq!(read == Err(Unusable::Unknown), version != VERSION);
        }
    }

    #[test]
    fn places_mean_nothing_in_another_log() {
        let stored = stored(&Text(1, "a".to_owned()));
        let read = decode::<Text>(&stored, |epoch| epoch != EPOCH);
        assert_eq!(read, Err(Unusable::OtherLog));
    }

    /// What is stored today has to be read by every later version.
    #[test]
    fn the_form_stays_what_it_is() {
        let recorded = [1, 0xd2, 0x85, 0xd8, 0xcc, 0x04, 200, 1, 1, 2, b'o', b'k'];
        let text = Text(200, "ok".to_owned());
        assert_eq!(encode(&text, 1_234_567_890).unwrap(), recorded);
    }
}
