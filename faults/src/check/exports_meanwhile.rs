//! Exports that completed under faults: each shows the state at one position of the log, which is
//! not before the requested one.

use std::collections::{BTreeMap, HashSet};

use event_log::Position;
use schemas::Log;

use super::{Evidence, Fact, Findings};
use crate::load::exports::EXPORTED;
use crate::notes::Exported;

const ONCE: &str = "ids that stand in an export once";
const STATES: &str = "rows of exports during faults that the record had at some time";
const WHOLE: &str = "exports during faults that hold all that stood there at one position";

/// A record's states, each with the event it starts at; `None` if it was deleted.
type History<'a> = Vec<(u64, Option<Vec<&'a str>>)>;
/// An organization's records of a kind by id.
type Records<'a> = BTreeMap<&'a str, History<'a>>;

pub(super) fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    for check in [ONCE, STATES, WHOLE] {
        findings.begin(check);
    }
    let exports = evidence.client.notes.exports();
    for org in &evidence.world.orgs {
        for (kind, columns) in EXPORTED {
            let records = records(evidence, &org.id, kind, columns);
            let of_them = exports
                .iter()
                .filter(|one| one.org == org.id && one.kind == *kind);
            for export in of_them {
                judge(export, &records, findings);
            }
        }
    }
}

fn records<'a>(evidence: &'a Evidence<'_>, org: &str, kind: &str, columns: &[&str]) -> Records<'a> {
    let event = match kind {
        "companies" => "company.",
        "deals" => "deal.",
        _ => "contact.",
    };
    let of_kind = |fact: &&Fact| fact.org == org && fact.kind.starts_with(event);
    let mut records = Records::new();
    for fact in evidence.facts.of(Log::Events).filter(of_kind) {
        let cell = |column: &&str| fact.data[*column].as_str().unwrap_or_default();
        let is_there = !fact.kind.ends_with(".deleted");
        let state = is_there.then(|| columns.iter().map(cell).collect());
        let id = fact.data["id"].as_str().unwrap_or_default();
        records.entry(id).or_default().push((fact.sequence, state));
    }
    records
}

fn judge(export: &Exported, records: &Records<'_>, findings: &mut Findings) {
    let Exported { org, kind, .. } = export;
    let what = || format!("an export of {kind} of {org} at {:?}", export.position);
    let asked = export.position.as_ref();
    let asked = asked.and_then(|position| position.parse().ok());
    let mut position = asked.map(Position::sequence).unwrap_or_default();
    let mut ids = HashSet::new();
    for row in &export.rows {
        let id = row.first().map(String::as_str).unwrap_or_default();
        let is_first = ids.insert(id);
        findings.judge(ONCE, is_first, what(), "once", id);
        let history = records.get(id).map(Vec::as_slice).unwrap_or_default();
        let since = history.iter().find(|(_, state)| {
            state
                .as_deref()
                .is_some_and(|state| state == row.as_slice())
        });
        findings.judge(
            STATES,
            since.is_some(),
            what(),
            "a state of it",
            row.join(","),
        );
        position = position.max(since.map(|(since, _)| *since).unwrap_or_default());
    }
    let differing =
        settle(&mut position, &ids, records).or_else(|| stale(position, export, records));
    let found = differing.unwrap_or_default();
    findings.judge(
        WHOLE,
        found.is_empty(),
        what(),
        format!("all at {position}"),
        found,
    );
}

/// Moves on to where all records that are not in the file are deleted; a record that never is
/// deleted is missing.
fn settle(position: &mut u64, ids: &HashSet<&str>, records: &Records<'_>) -> Option<String> {
    loop {
        let missing = records.iter().filter(|(id, _)| !ids.contains(*id));
        let mut there = missing.filter(|(_, history)| at(history, *position).is_some());
        let (id, history) = there.next()?;
        let deleted = history
            .iter()
            .find(|(at, state)| at > position && state.is_none());
        match deleted {
            Some((at, _)) => *position = *at,
            None => return Some(format!("no row of {id}")),
        }
    }
}

/// Finds a row that differs from the record at the position of the others.
fn stale(position: u64, export: &Exported, records: &Records<'_>) -> Option<String> {
    let is_stale = |row: &&Vec<String>| {
        let history = row.first().and_then(|id| records.get(id.as_str()));
        let there = history.and_then(|history| at(history, position));
        there.is_none_or(|there| there != row.as_slice())
    };
    let row = export.rows.iter().find(is_stale)?;
    Some(format!("{} at {position}", row.join(",")))
}

/// Returns the state of a record at a position.
fn at<'h>(history: &'h History<'_>, position: u64) -> Option<&'h [&'h str]> {
    let last = history.iter().rfind(|(since, _)| *since <= position)?;
    last.1.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is wrong with a file of these rows: `a` was changed at 3, `b` deleted at 4 and
    /// `c` created at 5.
    fn wrong(asked: Option<&str>, rows: &[[&str; 2]]) -> Vec<&'static str> {
        let state = |name: &'static str| Some(vec![&name[..1], name]);
        let records = Records::from([
            ("a", vec![(1, state("a1")), (3, state("a3"))]),
            ("b", vec![(2, state("b2")), (4, None)]),
            ("c", vec![(5, state("c5"))]),
        ]);
        let export = Exported {
            org: "o".to_owned(),
            kind: "deals",
            position: asked.map(str::to_owned),
            rows: rows
                .iter()
                .map(|row| row.map(str::to_owned).to_vec())
                .collect(),
        };
        let mut findings = Findings::default();
        judge(&export, &records, &mut findings);
        findings.wrong.iter().map(|wrong| wrong.check).collect()
    }

    #[test]
    fn a_file_is_all_that_stood_there_at_one_position() {
        for whole in [
            &[][..],
            &[["a", "a1"]],
            &[["a", "a1"], ["b", "b2"]],
            &[["a", "a3"], ["b", "b2"]],
            &[["a", "a3"]],
            &[["c", "c5"], ["a", "a3"]],
        ] {
            assert_eq!(wrong(None, whole), [] as [&str; 0], "{whole:?}");
        }
        for torn in [
            &[["b", "b2"]][..],
            &[["a", "a1"], ["c", "c5"]],
            &[["c", "c5"]],
        ] {
            assert_eq!(wrong(None, torn), [WHOLE], "{torn:?}");
        }
        assert_eq!(wrong(None, &[["a", "a1"], ["a", "a1"]]), [ONCE]);
        assert_eq!(wrong(None, &[["a", "b2"]]), [STATES, WHOLE]);
    }

    #[test]
    fn a_file_is_not_older_than_was_asked_for() {
        let at = "e00000000-4";
        assert_eq!(wrong(Some(at), &[["a", "a3"]]), [] as [&str; 0]);
        assert_eq!(wrong(Some(at), &[["a", "a3"], ["b", "b2"]]), [WHOLE]);
    }
}
