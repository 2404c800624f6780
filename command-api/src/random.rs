//! Randomness, passed in like time.

use chrono::{DateTime, Utc};
use ring::rand::{SecureRandom as _, SystemRandom};
use schemas::EventId;
use uuid::Uuid;

/// The system's source of random bytes.
#[derive(Clone, Debug)]
pub struct Random(SystemRandom);

impl Default for Random {
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Random {
    /// Random bytes, fit for secrets.
    ///
    /// # Panics
    /// If the system provides no randomness.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        #[expect(
            clippy::expect_used,
            reason = "a system without randomness can do nothing safely"
        )]
        self.0.fill(&mut bytes).expect("random bytes of the system");
        bytes
    }

    /// An unguessable id.
    pub fn id(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.bytes()).into_uuid()
    }

    /// An id that sorts by time, so that indexes of many grow at their end.
    pub fn id_at(&self, now: DateTime<Utc>) -> Uuid {
        let milliseconds = u64::try_from(now.timestamp_millis()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &self.bytes()).into_uuid()
    }

    /// A new event's id.
    pub fn event_id(&self, now: DateTime<Utc>) -> EventId {
        EventId(self.id_at(now))
    }

    /// `N` decimal digits, each equally likely.
    pub fn digits<const N: usize>(&self) -> String {
        let mut text = String::with_capacity(N);
        while text.len() < N {
            // The bytes beyond the last multiple of 10 would favour the first digits.
            let fair = self.bytes::<16>().into_iter().filter(|byte| *byte < 250);
            let some = fair.map(|byte| char::from(b'0' + byte % 10));
            text.extend(some.take(N - text.len()));
        }
        text
    }

    /// Characters of `[0-9A-Za-z]`, each equally likely.
    pub fn letters(&self, length: usize) -> String {
        const LETTERS: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut text = String::with_capacity(length);
        while text.len() < length {
            // The bytes beyond the last multiple of 62 would favour the first letters.
            let fair = self.bytes::<32>().into_iter().filter(|byte| *byte < 248);
            let some = fair.map(|byte| char::from(LETTERS[usize::from(byte) % 62]));
            text.extend(some.take(length - text.len()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_as_many_as_asked_for() {
        let text = Random::default().letters(100);
        assert_eq!(text.len(), 100);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }

    #[test]
    fn digits_are_as_many_as_asked_for_and_all_of_them_come() {
        let text: String = (0..100).map(|_| Random::default().digits::<6>()).collect();
        assert_eq!(text.len(), 600);
        assert!(('0'..='9').all(|digit| text.contains(digit)));
        assert!(text.bytes().all(|byte| byte.is_ascii_digit()));
    }

    #[test]
    fn later_ids_sort_behind_earlier_ones() {
        let random = Random::default();
        let now = DateTime::UNIX_EPOCH;
        let later = now + chrono::TimeDelta::milliseconds(1);
        assert!(random.id_at(now) < random.id_at(later));
    }
}
