//! What is shown of persons: no position is shown to a person who no longer shares a circle with
//! its person.
//!
//! Only what clients know by their own clock is judged: a position that was sent after a leaving
//! had been acknowledged, and that arrived before the next joining was requested.

use std::collections::HashMap;
use std::time::Instant;

use event_log::Position;
use schemas::Log;

use super::{Evidence, Facts, Findings};
use crate::notes::{Note, Outcome};
use crate::readers::Seen;

const SHARED: &str = "positions came only to those who share a circle with their person";
/// The path of the only webhook that wants positions, of the first organization.
const HOOK: &str = "/hook/0-all";

/// Commands by trace.
type Notes<'a> = HashMap<u128, &'a Note>;

/// The longest possible time span of a person's membership in a circle.
struct Membership {
    /// When it was requested; `None` if before the run, or unknown.
    from: Option<Instant>,
    /// When its end was acknowledged; `None` while it lasts, or if unknown.
    until: Option<Instant>,
}

/// The members of a circle over time, and the organization that owns it.
#[derive(Default)]
struct Circle<'a> {
    org: &'a str,
    members: HashMap<u64, Vec<Membership>>,
}

#[derive(Clone, Copy)]
enum Viewer<'a> {
    Person(u64),
    Organization(&'a str),
}

/// A position that was sent and shown to a person.
#[derive(Clone, Copy)]
struct Shown {
    of: u64,
    sent: Instant,
    seen: Instant,
}

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    findings.begin(SHARED);
    let notes = evidence.client.notes.commands();
    let notes: Notes<'_> = notes.iter().map(|note| (note.trace, note)).collect();
    let circles = circles(evidence.facts, &notes);
    let positions: HashMap<u64, (u64, Instant)> = positions(evidence.facts, &notes).collect();
    let mut judge = |viewer: Viewer<'_>, position: &str, seen: Instant| {
        let place = position.parse::<Position>().ok();
        let place = place.filter(|place| place.log() == Log::Locations);
        let Some(&(of, sent)) = place.and_then(|place| positions.get(&place.sequence())) else {
            return;
        };
        let may = may_be_shown(&circles, viewer, Shown { of, sent, seen });
        let what = format!("{position} of person {of}");
        findings.judge(SHARED, may, what, "not shown", viewer.name());
    };
    let on_positions = evidence
        .heard
        .iter()
        .filter(|one| one.channel == "locations");
    for heard in on_positions {
        let viewer = Viewer::Person(heard.who.parse().unwrap_or_default());
        for seen in &heard.seen {
            if let Seen::Event { position, at, .. } = seen {
                judge(viewer, position, *at);
            }
        }
    }
    let org = evidence.world.orgs.first().map_or("", |org| &org.id);
    for arrived in evidence.arrived.iter().filter(|one| one.path == HOOK) {
        judge(Viewer::Organization(org), &arrived.position, arrived.at);
    }
}

impl Viewer<'_> {
    fn name(self) -> String {
        match self {
            Self::Person(id) => format!("came to person {id}"),
            Self::Organization(id) => format!("came to organization {id}"),
        }
    }
}

fn circles<'a>(facts: &'a Facts, notes: &Notes<'_>) -> HashMap<&'a str, Circle<'a>> {
    let mut circles: HashMap<&str, Circle<'_>> = HashMap::new();
    for fact in facts.of(Log::Events) {
        let Some(person) = fact.person().filter(|_| fact.kind.starts_with("circle.")) else {
            continue;
        };
        let circle = circles.entry(&fact.stream).or_default();
        circle.org = &fact.org;
        let note = fact.trace.and_then(|trace| notes.get(&trace));
        let memberships = circle.members.entry(person).or_default();
        match fact.kind.as_str() {
            "circle.member_joined" => memberships.push(Membership {
                from: note.map(|note| note.sent),
                until: None,
            }),
            "circle.member_left" => {
                let ended =
                    note.filter(|note| matches!(note.outcome, Outcome::Acknowledged { .. }));
                if let Some(last) = memberships.last_mut() {
                    last.until = ended.map(|note| note.known);
                }
            }
            _ => {}
        }
    }
    circles
}

/// The positions that a client sent, with their person and time.
fn positions(facts: &Facts, notes: &Notes<'_>) -> impl Iterator<Item = (u64, (u64, Instant))> {
    facts.of(Log::Locations).filter_map(|fact| {
        let sent = notes.get(&fact.trace?)?.sent;
        Some((fact.sequence, (fact.person()?, sent)))
    })
}

fn may_be_shown(circles: &HashMap<&str, Circle<'_>>, viewer: Viewer<'_>, shown: Shown) -> bool {
    let is_in = |circle: &Circle<'_>, person: u64| {
        let memberships = circle.members.get(&person).into_iter();
        memberships.flatten().any(|one| one.may_last(shown))
    };
    let mut circles = circles.values();
    match viewer {
        Viewer::Person(viewer) => {
            viewer == shown.of
                || circles.any(|circle| is_in(circle, viewer) && is_in(circle, shown.of))
        }
        Viewer::Organization(org) => {
            circles.any(|circle| circle.org == org && is_in(circle, shown.of))
        }
    }
}

impl Membership {
    /// Whether it may have lasted at some time between a position's sending and its arrival.
    fn may_last(&self, shown: Shown) -> bool {
        let has_begun = self.from.is_none_or(|from| from <= shown.seen);
        let has_not_ended = self.until.is_none_or(|until| until >= shown.sent);
        has_begun && has_not_ended
    }
}
