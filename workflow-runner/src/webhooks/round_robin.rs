//! Round-robin scheduling: organizations take turns, and within each its endpoints.

use std::collections::{HashMap, VecDeque};

use schemas::{OrgId, WebhookId};

/// Queues that may have something to do. However many endpoints one organization has, another
/// organization's endpoints wait for at most one of them.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    orgs: VecDeque<OrgId>,
    /// Never an empty queue.
    queues: HashMap<OrgId, VecDeque<WebhookId>>,
}

/// Queues and organizations that are passed over for now.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    queues: Vec<(OrgId, WebhookId)>,
    orgs: Vec<(OrgId, VecDeque<WebhookId>)>,
}

impl RoundRobin {
    /// Adds a queue after the waiting ones of its organization.
    pub(super) fn push(&mut self, org: &OrgId, webhook: WebhookId) {
        if let Some(queues) = self.queues.get_mut(org) {
            return queues.push_back(webhook);
        }
        self.queues.insert(org.clone(), VecDeque::from([webhook]));
        self.orgs.push_back(org.clone());
    }

    /// The next queue of the next organization.
    pub(super) fn pop(&mut self) -> Option<(OrgId, WebhookId)> {
        let org = self.orgs.pop_front()?;
        let queues = self.queues.get_mut(&org)?;
        let webhook = queues.pop_front()?;
        if queues.is_empty() {
            self.queues.remove(&org);
        } else {
            self.orgs.push_back(org.clone());
        }
        Some((org, webhook))
    }

    pub(super) fn remove(&mut self, org: &OrgId, webhook: &WebhookId) {
        let Some(queues) = self.queues.get_mut(org) else {
            return;
        };
        queues.retain(|other| other != webhook);
        if queues.is_empty() {
            self.queues.remove(org);
            self.orgs.retain(|other| other != org);
        }
    }

    /// Passes over all queues of an organization, including this one, which was just popped.
    pub(super) fn pass_over(&mut self, org: OrgId, webhook: WebhookId, over: &mut Skipped) {
        let mut queues = self.queues.remove(&org).unwrap_or_default();
        if !queues.is_empty() && self.orgs.back() == Some(&org) {
            self.orgs.pop_back();
        }
        queues.push_front(webhook);
        over.orgs.push((org, queues));
    }

    /// Puts the passed-over queues back, before all others.
    pub(super) fn put_back(&mut self, over: Skipped) {
        for (org, mut queues) in over.orgs.into_iter().rev() {
            if let Some(come_since) = self.queues.remove(&org) {
                queues.extend(come_since);
                self.orgs.retain(|other| *other != org);
            }
            self.queues.insert(org.clone(), queues);
            self.orgs.push_front(org);
        }
        for (org, webhook) in over.queues.into_iter().rev() {
            if let Some(queues) = self.queues.get_mut(&org) {
                queues.push_front(webhook);
            } else {
                self.queues.insert(org.clone(), VecDeque::from([webhook]));
                self.orgs.push_front(org);
            }
        }
    }
}

impl Skipped {
    /// Passes over this queue too, which was just popped.
    pub(super) fn queue(&mut self, org: OrgId, webhook: WebhookId) {
        self.queues.push((org, webhook));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(queues: &[(&str, &str)]) -> RoundRobin {
        let mut turns = RoundRobin::default();
        for (org, webhook) in queues {
            turns.push(&(*org).into(), (*webhook).into());
        }
        turns
    }

    fn all(turns: &mut RoundRobin) -> Vec<String> {
        let next = std::iter::from_fn(|| turns.pop());
        next.map(|(_, webhook)| webhook.into_string()).collect()
    }

    const TWO: [(&str, &str); 4] = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")];

    #[test]
    fn one_endpoint_of_an_organization_is_next_beside_many_of_another() {
        let mut turns = turns(&TWO);
        turns.remove(&"a".into(), &"a2".into());
        assert_eq!(all(&mut turns), ["a1", "b1", "a3"]);
        assert!(turns.queues.is_empty() && turns.orgs.is_empty());
    }

    #[test]
    fn those_passed_over_come_first_afterwards() {
        let mut turns = turns(&TWO);
        let mut over = Skipped::default();
        let (org, webhook) = turns.pop().unwrap();
        over.queue(org, webhook);
        let (org, webhook) = turns.pop().unwrap();
        assert_eq!(webhook.as_str(), "b1");
        turns.pass_over(org, webhook, &mut over);
        let (org, webhook) = turns.pop().unwrap();
        turns.pass_over(org, webhook, &mut over);
        assert!(turns.pop().is_none());
        turns.put_back(over);
        assert_eq!(all(&mut turns), ["b1", "a1", "a2", "a3"]);
        assert!(turns.queues.is_empty() && turns.orgs.is_empty());
    }
}
