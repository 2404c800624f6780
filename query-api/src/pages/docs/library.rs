//! The displayed documents of the folder `docs`.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Serialize;

use super::markdown::{self, Places, Section};
use super::pictures;

/// A document's path in the sources, its description and its text.
type Source = (&'static str, &'static str, &'static str);

macro_rules! sources {
    ($($path:literal $about:literal)+) => {
        &[$(($path, $about, include_str!(concat!("../../../../", $path)))),+]
    };
}

/// The shelves in order: their names, the folders of their addresses, and their documents.
const SHELVES: &[(&str, &str, &[Source])] = &[
    (
        "Tutorial",
        "",
        sources! {
            "docs/tutorial.md" "From nothing to a workflow that reacts, waits, calls out and tells a webhook, in ten minutes."
        },
    ),
    (
        "Operate Waypost",
        "how-to",
        sources! {
            "docs/how-to/scale-out.md" "More processes, more machines."
            "docs/how-to/back-up-and-restore.md" "A backup that you have restored once."
            "docs/how-to/monitor.md" "What to collect, when to be woken, and what to do then."
            "docs/how-to/operate-read-models.md" "Dead letters, rebuild and verify, on the System page."
            "docs/how-to/rotate-keys.md" "API keys, webhook secrets, the token key, the master key."
            "docs/how-to/forget-a-person.md" "Make what is kept of somebody unreadable, for good."
            "docs/how-to/show-a-map.md" "Streets under the live map, from a tile server of your choice."
        },
    ),
    (
        "Build on Waypost",
        "how-to",
        sources! {
            "docs/how-to/move-data-in.md" "Contacts, companies and deals from a CSV export."
            "docs/how-to/keep-a-copy-up-to-date.md" "Fetch only what was written or deleted since."
            "docs/how-to/verify-webhooks.md" "In Python, JavaScript, PHP, Ruby and Go."
            "docs/how-to/build-a-phone-tracker.md" "Accounts, circles, positions, places and SOS."
        },
    ),
    (
        "Change Waypost",
        "how-to",
        sources! {
            "docs/how-to/add-a-step-type.md" "For workflows that do something new."
            "docs/how-to/add-a-record-field.md" "Every place that one field touches."
            "docs/how-to/add-a-projection.md" "For reads that no table serves yet."
            "docs/how-to/add-an-event-version.md" "Old events stay readable."
        },
    ),
    (
        "Reference",
        "reference",
        sources! {
            "docs/reference/workflows.md" "Steps, templates, expressions, retries."
            "docs/reference/events.md" "Every type, with its fields and an example."
            "docs/reference/errors.md" "Statuses, trace ids, what to retry."
            "docs/reference/settings.md" "Every variable, with its default."
            "docs/reference/command-line.md" "The operator's program, and the scopes of keys."
            "docs/reference/metrics.md" "What is measured, and what to watch."
        },
    ),
    (
        "Explanation",
        "explanation",
        sources! {
            "ARCHITECTURE.md" "The rooms, the way of the data, the invariants."
            "docs/explanation/log.md" "Why everything is an event, and what an acknowledgement means."
            "docs/explanation/positions.md" "Read your own writes, resume without gap or duplicate."
            "docs/explanation/limits.md" "How a limit is exact across processes."
            "docs/explanation/forgetting.md" "How a log that never changes can forget a person."
            "docs/explanation/durability.md" "What can be lost, and when."
            "docs/scale.md" "What is divided, what one leader does, and how to go past it."
            "docs/security.md" "Who attacks, what holds, what does not."
            "docs/faults.md" "What Waypost is put through, and what came of it."
            "docs/figures.md" "What it does in a second, measured."
        },
    ),
];

/// The page with the description of the API.
pub(super) const API: &str = "/docs/reference/api";
/// The JSON Schema of workflows, as a file.
pub(super) const SCHEMA: &str = "/docs/reference/workflow.schema.json";

/// All documents.
pub(super) static LIBRARY: LazyLock<Vec<Shelf>> = LazyLock::new(|| {
    let shelves = SHELVES.iter().map(|(name, folder, sources)| Shelf {
        name,
        documents: sources
            .iter()
            .map(|source| Document::of(folder, source))
            .collect(),
    });
    shelves.collect()
});

/// Documents of a kind.
#[derive(Serialize)]
pub(super) struct Shelf {
    pub(super) name: &'static str,
    pub(super) documents: Vec<Document>,
}

/// A document.
#[derive(Serialize)]
pub(super) struct Document {
    pub(super) address: String,
    pub(super) title: String,
    pub(super) about: &'static str,
    #[serde(skip)]
    pub(super) source: &'static str,
    #[serde(skip)]
    pub(super) html: String,
    #[serde(skip)]
    pub(super) sections: Vec<Section>,
}

impl Document {
    fn of(folder: &str, (path, about, source): &Source) -> Self {
        let written = markdown::write(source, &Within(path));
        let title = written.title.strip_prefix("Tutorial: ");
        Self {
            address: address_of(folder, path),
            title: title.map_or(written.title.clone(), capitalized),
            about,
            source,
            html: written.html,
            sections: written.sections,
        }
    }
}

/// Returns the document at an address.
pub(super) fn document_at(address: &str) -> Option<&'static Document> {
    let mut documents = LIBRARY.iter().flat_map(|shelf| &shelf.documents);
    documents.find(|document| document.address == address)
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn address_of(folder: &str, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".md").unwrap_or(name).to_lowercase();
    let mut address = "/docs".to_owned();
    for part in [folder, &name] {
        if !part.is_empty() {
            let _ = write!(address, "/{part}");
        }
    }
    address
}

/// The document at a path, relative to which others are named.
struct Within<'d>(&'d str);

impl Places for Within<'_> {
    fn lead(&self, link: &str) -> Option<String> {
        lead(self.0, link)
    }

    fn picture(&self, link: &str, about: &str) -> Option<String> {
        pictures::shown(&joined(self.0, link), about)
    }
}

/// Returns the target of a link of the document at `path`: another page, a place within this one or
/// elsewhere. Links to files that are not displayed have none.
fn lead(path: &str, link: &str) -> Option<String> {
    if link.starts_with("https://") || link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, format!("#{anchor}")),
        None => (link, String::new()),
    };
    let target = joined(path, file);
    let address = match target.as_str() {
        "docs/README.md" => "/docs".to_owned(),
        "docs/reference/api.md" => API.to_owned(),
        "docs/reference/workflow.schema.json" => SCHEMA.to_owned(),
        "docs/openapi.json" | "docs/asyncapi.json" => target.strip_prefix("docs")?.to_owned(),
        target => {
            let shelf_of = |(_, folder, sources): &(&str, &'static str, &[Source])| {
                let has_it = sources.iter().any(|(known, ..)| *known == target);
                has_it.then_some(*folder)
            };
            address_of(SHELVES.iter().find_map(shelf_of)?, target)
        }
    };
    Some(address + &anchor)
}

/// Resolves the path of a file as named in another one.
fn joined(from: &str, file: &str) -> String {
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Documents of the folder that are not displayed: the page of the API replaces its text, and
    /// the list of documents their list.
    const NOT_SHOWN: &[&str] = &["docs/README.md", "docs/reference/api.md"];

    #[test]
    fn every_document_for_users_is_on_a_shelf() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = BTreeSet::new();
        for folder in ["docs", "docs/how-to", "docs/reference", "docs/explanation"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let path = format!("{folder}/{name}");
                let is_text = Path::new(&name)
                    .extension()
                    .is_some_and(|kind| kind == "md");
                if is_text && !NOT_SHOWN.contains(&path.as_str()) {
                    found.insert(path);
                }
            }
        }
        let sources = SHELVES.iter().flat_map(|(.., sources)| *sources);
        let shown: BTreeSet<_> = sources.map(|(path, ..)| (*path).to_owned()).collect();
        let missing: Vec<_> = found.difference(&shown).collect();
        assert!(missing.is_empty(), "not on a shelf: {missing:?}");
    }

    #[test]
    fn links_lead_to_pages() {
        for (from, link, to) in [
            (
                "docs/tutorial.md",
                "reference/workflows.md",
                "/docs/reference/workflows",
            ),
            (
                "docs/how-to/rotate-keys.md",
                "../security.md#limits",
                "/docs/explanation/security#limits",
            ),
            (
                "docs/reference/events.md",
                "../tutorial.md",
                "/docs/tutorial",
            ),
            (
                "docs/faults.md",
                "../ARCHITECTURE.md",
                "/docs/explanation/architecture",
            ),
            (
                "docs/reference/errors.md",
                "api.md#auth",
                "/docs/reference/api#auth",
            ),
            ("docs/security.md", "#limits", "#limits"),
        ] {
            assert_eq!(lead(from, link).as_deref(), Some(to));
        }
        assert_eq!(
            lead("docs/security.md", "decisions/0001-idempotency-keys.md"),
            None
        );
        assert_eq!(lead("docs/faults.md", "http://elsewhere.example"), None);
    }
}
