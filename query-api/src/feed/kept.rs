//! What is known about who may be seen, kept for all readers of an organization.
//!
//! To know it anew takes reads that grow with an organization's members; to update it takes none if
//! nothing has happened. An update is what readers need before they show anything, so that nobody
//! who has left or hides is shown by what was known before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event_log::{EventLog, ReadError};
use schemas::{Log, OrgId};
use tokio::sync::{self, OwnedMutexGuard};
use tokio::time::Instant;

use super::sharing::Sharing;

/// Approximate size of what is kept for organizations that are not being updated.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// What the readers of a process share. Clones share their state.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptSharings(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    organizations: HashMap<OrgId, Organization>,
    bytes: usize,
    /// How often anything was used.
    uses: u64,
}

#[derive(Debug)]
struct Organization {
    known: Arc<sync::Mutex<Known>>,
    /// Its approximate size when it was last used.
    bytes: usize,
    /// Which use was the last one.
    used: u64,
}

/// What is known for an organization, updated by one reader at a time.
#[derive(Debug)]
struct Known {
    sharing: Sharing,
    /// When an update last failed.
    failed_at: Option<Instant>,
}

/// A reader's turn to update what is known. Its size is recorded at the end, however it ends.
struct Turn<'k> {
    kept: &'k KeptSharings,
    org: &'k OrgId,
    known: OwnedMutexGuard<Known>,
}

impl KeptSharings {
    /// Returns who may be seen by everything that the log has when this is called. Readers that
    /// wait for each other share what the first one reads, and its failure too, so that they do not
    /// wait for a silent log one after the other.
    pub(super) async fn current(&self, log: &EventLog, org: &OrgId) -> Result<Sharing, ReadError> {
        let asked = Instant::now();
        let end = log.end_for_reader(Log::Events).await?.sequence();
        let mut turn = self.turn(org).await;
        if turn.known.failed_at.is_some_and(|failed| failed >= asked) {
            let reason = "another reader has just waited for it in vain";
            return Err(ReadError::Unavailable(reason.to_owned()));
        }
        let updated = turn.known.sharing.catch_up(log, end).await;
        if let Err(error) = updated {
            turn.known.failed_at = Some(Instant::now());
            return Err(error);
        }
        Ok(turn.known.sharing.clone())
    }

    async fn turn<'k>(&'k self, org: &'k OrgId) -> Turn<'k> {
        let known = lock(&self.0).of(org);
        Turn {
            kept: self,
            org,
            known: known.lock_owned().await,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let known = OwnedMutexGuard::mutex(&self.known);
        let bytes = self.known.sharing.bytes();
        lock(&self.kept.0).resize(self.org, known, bytes, KEPT_BYTES);
    }
}

impl Kept {
    /// Returns what is kept for an organization, at first nothing.
    fn of(&mut self, org: &OrgId) -> Arc<sync::Mutex<Known>> {
        self.uses += 1;
        if let Some(kept) = self.organizations.get_mut(org) {
            kept.used = self.uses;
            return Arc::clone(&kept.known);
        }
        let sharing = Sharing::new(org);
        let bytes = sharing.bytes();
        let known = Arc::new(sync::Mutex::new(Known {
            sharing,
            failed_at: None,
        }));
        let kept = Organization {
            known: Arc::clone(&known),
            bytes,
            used: self.uses,
        };
        self.bytes += bytes;
        self.organizations.insert(org.clone(), kept);
        known
    }

    /// Records the size of what is known for an organization, and drops what was not used for
    /// longest until the rest fits into `most` bytes. What alone does not fit is not kept at all.
    fn resize(&mut self, org: &OrgId, known: &Arc<sync::Mutex<Known>>, bytes: usize, most: usize) {
        let kept = self.organizations.get_mut(org);
        let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.known, known)) else {
            // It was dropped meanwhile.
            return;
        };
        self.bytes = self.bytes - kept.bytes + bytes;
        kept.bytes = bytes;
        if bytes > most {
            self.remove(org);
        }
        while self.bytes > most {
            let oldest = self.organizations.iter().min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(org, _)| org.clone()) else {
                return;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, org: &OrgId) {
        if let Some(removed) = self.organizations.remove(org) {
            self.bytes -= removed.bytes;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds this lock can panic halfway through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn org(name: &str) -> OrgId {
        OrgId::from(name)
    }

    fn names(kept: &Kept) -> Vec<&str> {
        let mut names: Vec<_> = kept.organizations.keys().map(OrgId::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let mut kept = Kept::default();
        let (a, b) = (org("a"), org("b"));
        let known_a = kept.of(&a);
        let known_b = kept.of(&b);
        kept.resize(&a, &known_a, 4_000, 10_000);
        kept.resize(&b, &known_b, 4_000, 10_000);
        assert_eq!(names(&kept), ["a", "b"]);
        // Used again, so that `b` is the older one.
        assert!(Arc::ptr_eq(&known_a, &kept.of(&a)));
        let c = org("c");
        let known_c = kept.of(&c);
        kept.resize(&c, &known_c, 4_000, 10_000);
        assert_eq!((names(&kept), kept.bytes), (vec!["a", "c"], 8_000));
        // `b` is still in use by somebody, who changes nothing of what is kept.
        kept.resize(&b, &known_b, 9_000, 10_000);
        assert_eq!((names(&kept), kept.bytes), (vec!["a", "c"], 8_000));
        assert!(!Arc::ptr_eq(&known_b, &kept.of(&b)));
    }

    #[test]
    fn what_does_not_fit_alone_does_not_displace_others() {
        let mut kept = Kept::default();
        let (small, large) = (org("small"), org("large"));
        let known_small = kept.of(&small);
        kept.resize(&small, &known_small, 4_000, 10_000);
        let known_large = kept.of(&large);
        kept.resize(&large, &known_large, 10_001, 10_000);
        assert_eq!((names(&kept), kept.bytes), (vec!["small"], 4_000));
    }

    #[test]
    fn organizations_about_which_nothing_is_known_are_bounded_too() {
        let mut kept = Kept::default();
        for n in 0..1_000 {
            let org = org(&n.to_string());
            let known = kept.of(&org);
            let bytes = Sharing::new(&org).bytes();
            kept.resize(&org, &known, bytes, 10_000);
        }
        assert!(kept.bytes <= 10_000 && kept.organizations.len() > 2);
        let bytes: usize = kept.organizations.values().map(|kept| kept.bytes).sum();
        assert_eq!(kept.bytes, bytes);
    }

    #[tokio::test]
    async fn a_turn_that_was_given_up_is_counted_and_lets_the_next_one_in() {
        let (kept, org) = (KeptSharings::default(), org("a"));
        let turn = kept.turn(&org).await;
        let known = Arc::clone(OwnedMutexGuard::mutex(&turn.known));
        assert!(known.try_lock().is_err());
        drop(turn);
        assert!(known.try_lock().is_ok());
        assert_eq!(lock(&kept.0).bytes, Sharing::new(&org).bytes());
        assert!(Arc::ptr_eq(&known, &lock(&kept.0).of(&org)));
    }
}
