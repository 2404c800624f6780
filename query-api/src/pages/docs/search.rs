//! Searches the documents and the description of the API.

use serde::Serialize;

use super::api::Called;
use super::library::LIBRARY;
use super::markdown::Section;

/// More results than anyone reads, and a longer query than anyone sends.
const MOST: usize = 40;
const LONGEST: usize = 100;
/// Characters shown around a hit.
const AROUND: usize = 90;

/// A search result.
#[derive(Serialize)]
pub(super) struct Found {
    pub(super) address: String,
    title: String,
    within: String,
    text: String,
    #[serde(skip)]
    rank: u8,
}

/// Returns everything that contains all the words, matching headings first.
pub(super) fn search(asked: &str, operations: &[Called]) -> Vec<Found> {
    let asked: String = asked.chars().take(LONGEST).collect();
    let words: Vec<_> = asked.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let called = operations.iter().filter_map(|called| {
        let names = format!("{} {} {}", called.summary, called.line, called.id);
        let rank = rank(&words, &names, "")?;
        Some(Found {
            address: called.address.clone(),
            title: called.summary.replace('`', ""),
            within: "API".to_owned(),
            text: called.line.clone(),
            rank,
        })
    });
    let documents = LIBRARY.iter().flat_map(|shelf| &shelf.documents);
    let told = documents.flat_map(|document| {
        let sections = document.sections.iter();
        sections.filter_map(|section| {
            let rank = rank(&words, &section.heading, &section.text)?;
            Some(Found {
                address: match section.anchor.as_str() {
                    "" => document.address.clone(),
                    anchor => format!("{}#{anchor}", document.address),
                },
                title: section.heading.clone(),
                within: document.title.clone(),
                text: around(section, &words[0]),
                rank: rank + u8::from(!section.anchor.is_empty()),
            })
        })
    });
    let mut found: Vec<_> = told.chain(called).collect();
    found.sort_by_key(|found| found.rank);
    found.truncate(MOST);
    found
}

/// Returns the rank of a hit, the lower the closer; `None` if a word is missing.
fn rank(words: &[String], heading: &str, text: &str) -> Option<u8> {
    let (heading, text) = (heading.to_lowercase(), text.to_lowercase());
    if words.iter().all(|word| heading.contains(word.as_str())) {
        return Some(0);
    }
    let told = |word: &String| heading.contains(word.as_str()) || text.contains(word.as_str());
    words.iter().all(told).then_some(2)
}

/// Returns an excerpt of the text around the word.
fn around(section: &Section, word: &str) -> String {
    let text: Vec<char> = section.text.chars().collect();
    let lower = section.text.to_lowercase();
    let at = lower.find(word).map_or(0, |at| lower[..at].chars().count());
    let (from, to) = (at.saturating_sub(AROUND), (at + AROUND).min(text.len()));
    let from = from.min(to);
    let piece: String = text[from..to].iter().collect();
    let piece = piece.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = (
        if from > 0 { "… " } else { "" },
        if to < text.len() { " …" } else { "" },
    );
    format!("{before}{piece}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_headings_come_before_matching_text() {
        let found = search("master KEY", &[]);
        assert!(found.len() > 2);
        assert_eq!(found[0].address, "/docs/how-to/rotate-keys#the-master-key");
        assert!(search("  ", &[]).is_empty());
        assert!(search("no such words anywhere", &[]).is_empty());
        assert!(search(&"e ".repeat(10_000), &[]).len() <= MOST);
    }

    #[test]
    fn operations_are_found_by_their_path() {
        let found = search("/api/v1/ORDERS", super::super::api::operations());
        let mut addresses = found.iter().map(|found| found.address.as_str());
        assert!(addresses.any(|found| found == "/docs/reference/api/business-data#listOrders"));
    }
}
