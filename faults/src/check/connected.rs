//! Who is in an organization's circles: a person who has left them all is not reported any more,
//! whatever came before.

use std::collections::{HashMap, HashSet};

use super::Fact;

/// Every person's circles, by organization.
#[derive(Default)]
pub(crate) struct Connected(HashMap<(String, String), Membership>);

#[derive(Default)]
struct Membership {
    circles: HashSet<String>,
    /// The last event before which the person was in none.
    alone_until: u64,
}

impl Connected {
    pub(crate) fn note(&mut self, fact: &Fact) {
        let joins = match fact.kind.as_str() {
            "circle.member_joined" => true,
            "circle.member_left" => false,
            _ => return,
        };
        let membership = self.0.entry(key(fact)).or_default();
        if !joins {
            membership.circles.remove(&fact.stream);
            return;
        }
        if membership.circles.is_empty() {
            membership.alone_until = fact.sequence;
        }
        membership.circles.insert(fact.stream.clone());
    }

    /// Whether an event's person has been in one of the organization's circles ever since.
    pub(crate) fn ever_since(&self, fact: &Fact) -> bool {
        let membership = self.0.get(&key(fact));
        membership
            .is_some_and(|known| !known.circles.is_empty() && known.alone_until < fact.sequence)
    }
}

fn key(fact: &Fact) -> (String, String) {
    (fact.org.clone(), fact.data["user_id"].to_string())
}
