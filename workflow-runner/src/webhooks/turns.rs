//! Whose turn it is: organizations by turns, and within each its endpoints by turns.

use std::collections::{HashMap, VecDeque};

use schemas::{OrgId, WebhookId};

/// Lanes that may have something to do. However many endpoints one organization has, those of
/// another wait for one of them at most.
#[derive(Debug, Default)]
pub(super) struct Turns {
    orgs: VecDeque<OrgId>,
    /// Never without a lane.
    lanes: HashMap<OrgId, VecDeque<WebhookId>>,
}

/// Lanes and organizations that are passed over for now.
#[derive(Debug, Default)]
pub(super) struct PassedOver {
    lanes: Vec<(OrgId, WebhookId)>,
    orgs: Vec<(OrgId, VecDeque<WebhookId>)>,
}

impl Turns {
    /// A lane's turn comes behind those of its organization that wait.
    pub(super) fn push(&mut self, org: &OrgId, webhook: WebhookId) {
        if let Some(lanes) = self.lanes.get_mut(org) {
            return lanes.push_back(webhook);
        }
        self.lanes.insert(org.clone(), VecDeque::from([webhook]));
        self.orgs.push_back(org.clone());
    }

    /// The next lane of the next organization.
    pub(super) fn pop(&mut self) -> Option<(OrgId, WebhookId)> {
        let org = self.orgs.pop_front()?;
        let lanes = self.lanes.get_mut(&org)?;
        let webhook = lanes.pop_front()?;
        if lanes.is_empty() {
            self.lanes.remove(&org);
        } else {
            self.orgs.push_back(org.clone());
        }
        Some((org, webhook))
    }

    pub(super) fn remove(&mut self, org: &OrgId, webhook: &WebhookId) {
        let Some(lanes) = self.lanes.get_mut(org) else {
            return;
        };
        lanes.retain(|other| other != webhook);
        if lanes.is_empty() {
            self.lanes.remove(org);
            self.orgs.retain(|other| other != org);
        }
    }

    /// Passes over all lanes of an organization, this one of which has had its turn just now.
    pub(super) fn pass_over(&mut self, org: OrgId, webhook: WebhookId, over: &mut PassedOver) {
        let mut lanes = self.lanes.remove(&org).unwrap_or_default();
        if !lanes.is_empty() && self.orgs.back() == Some(&org) {
            self.orgs.pop_back();
        }
        lanes.push_front(webhook);
        over.orgs.push((org, lanes));
    }

    /// Lets those have their turns again that were passed over, before all others.
    pub(super) fn put_back(&mut self, over: PassedOver) {
        for (org, mut lanes) in over.orgs.into_iter().rev() {
            if let Some(come_since) = self.lanes.remove(&org) {
                lanes.extend(come_since);
                self.orgs.retain(|other| *other != org);
            }
            self.lanes.insert(org.clone(), lanes);
            self.orgs.push_front(org);
        }
        for (org, webhook) in over.lanes.into_iter().rev() {
            if let Some(lanes) = self.lanes.get_mut(&org) {
                lanes.push_front(webhook);
            } else {
                self.lanes.insert(org.clone(), VecDeque::from([webhook]));
                self.orgs.push_front(org);
            }
        }
    }
}

impl PassedOver {
    /// This lane as well, which has had its turn just now.
    pub(super) fn lane(&mut self, org: OrgId, webhook: WebhookId) {
        self.lanes.push((org, webhook));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(lanes: &[(&str, &str)]) -> Turns {
        let mut turns = Turns::default();
        for (org, webhook) in lanes {
            turns.push(&(*org).into(), (*webhook).into());
        }
        turns
    }

    fn all(turns: &mut Turns) -> Vec<String> {
        let next = std::iter::from_fn(|| turns.pop());
        next.map(|(_, webhook)| webhook.into_string()).collect()
    }

    const TWO: [(&str, &str); 4] = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")];

    #[test]
    fn one_endpoint_of_an_organization_is_next_beside_many_of_another() {
        let mut turns = turns(&TWO);
        turns.remove(&"a".into(), &"a2".into());
        assert_eq!(all(&mut turns), ["a1", "b1", "a3"]);
        assert!(turns.lanes.is_empty() && turns.orgs.is_empty());
    }

    #[test]
    fn those_passed_over_come_first_afterwards() {
        let mut turns = turns(&TWO);
        let mut over = PassedOver::default();
        let (org, webhook) = turns.pop().unwrap();
        over.lane(org, webhook);
        let (org, webhook) = turns.pop().unwrap();
        assert_eq!(webhook.as_str(), "b1");
        turns.pass_over(org, webhook, &mut over);
        let (org, webhook) = turns.pop().unwrap();
        turns.pass_over(org, webhook, &mut over);
        assert!(turns.pop().is_none());
        turns.put_back(over);
        assert_eq!(all(&mut turns), ["b1", "a1", "a2", "a3"]);
        assert!(turns.lanes.is_empty() && turns.orgs.is_empty());
    }
}
