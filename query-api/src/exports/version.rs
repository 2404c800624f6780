//! The state of the records that a file shows, so that a client that already has it receives a
//! notice instead of the file.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::http::header::{
    CACHE_CONTROL, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use axum::http::{HeaderMap, HeaderValue};
use chrono::{DateTime, NaiveDateTime, SubsecRound as _, Utc};
use schemas::OrgId;
use sqlx::PgExecutor;

use super::{ExportRequest, Format};

/// Changes whenever the same records are written differently than before.
const WRITING: u32 = 1;
/// The time format of HTTP.
const HTTP_DATE: &str = "%a, %d %b %Y %H:%M:%S GMT";
/// Clients that cache a file must revalidate it before showing it, and may not share it.
const KEPT: HeaderValue = HeaderValue::from_static("private, no-cache");
/// A file depends on the credentials, and on whether it may be compressed.
const VARIES: HeaderValue = HeaderValue::from_static("Accept-Encoding, Authorization, Cookie");

/// The source of an organization's files.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The organization's name.
    pub(super) organization: String,
    /// When the records last changed, and by which event; if none was ever written, when the
    /// organization was made. No two states share that time.
    changed_at: Option<DateTime<Utc>>,
    sequence: Option<i64>,
}

/// The headers of conditional requests for a file.
#[derive(Clone, Debug)]
pub(super) struct Version {
    tag: Option<String>,
    /// A whole second, once it has come.
    changed_at: Option<DateTime<Utc>>,
    /// The same second, or the present one if it has not come yet.
    last_modified: Option<DateTime<Utc>>,
}

impl Source {
    /// Reads the source, at the cost of two rows.
    pub(super) async fn read(
        rows: impl PgExecutor<'_>,
        org: &OrgId,
        projection: &str,
    ) -> Result<Self, sqlx::Error> {
        let row = sqlx::query!(
            r#"SELECT coalesce(organizations.name, $1) AS "organization!",
                      sequence AS "sequence?",
                      coalesce(changed_at, organizations.created_at) AS "changed_at?"
               FROM (SELECT $1 AS org_id) AS asked
               LEFT JOIN organizations ON organizations.org_id = asked.org_id
               LEFT JOIN record_changes
                   ON record_changes.org_id = asked.org_id AND record_changes.kind = $2"#,
            org.as_str(),
            projection,
        )
        .fetch_one(rows)
        .await?;
        Ok(Self {
            organization: row.organization,
            changed_at: row.changed_at.map(|at| at.trunc_subsecs(0)),
            sequence: row.sequence,
        })
    }

    /// Returns the version of the requested file.
    pub(super) fn version(&self, org: &OrgId, request: ExportRequest) -> Version {
        let mut hash = DefaultHasher::new();
        (
            WRITING,
            env!("CARGO_PKG_VERSION"),
            org.as_str(),
            self.sequence,
        )
            .hash(&mut hash);
        (request.kind.name, request.kind.statement).hash(&mut hash);
        (request.coding, request.since).hash(&mut hash);
        for column in request.kind.columns {
            column.name.hash(&mut hash);
        }
        let weak = match request.format {
            Format::Csv => "",
            Format::Document(_) => {
                (request.format.extension(), &self.organization).hash(&mut hash);
                // A document also contains the time of its creation.
                "W/"
            }
        };
        let second = self.changed_at.map_or(0, |at| at.timestamp());
        let hash = hash.finish();
        Version {
            tag: Some(format!("{weak}\"{second:x}-{hash:016x}\"")),
            // If changes come faster than once a second, their times run ahead.
            changed_at: self.changed_at.filter(|changed| *changed <= request.at),
            last_modified: self
                .changed_at
                .map(|changed| changed.min(request.at.trunc_subsecs(0))),
        }
    }
}

impl Version {
    /// Whether a client has exactly this file, according to the conditions that it sent.
    pub(super) fn is_known(&self, asked: &HeaderMap) -> bool {
        let mut tags = asked.get_all(IF_NONE_MATCH).iter().peekable();
        if tags.peek().is_some() {
            return self.tag.as_deref().is_some_and(|tag| {
                tags.filter_map(|value| value.to_str().ok())
                    .flat_map(|value| value.split(','))
                    .any(|known| known.trim() == "*" || opaque(known.trim()) == opaque(tag))
            });
        }
        // Only the exact time that was sent counts: one between two changes may come from a clock
        // that differs from ours.
        let since = asked.get(IF_MODIFIED_SINCE).and_then(moment);
        since.is_some() && since == self.changed_at
    }

    /// Adds the headers.
    pub(super) fn tell(&self, headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, KEPT);
        headers.insert(VARY, VARIES);
        let last_modified = self.last_modified;
        let last_modified = last_modified.map(|at| at.format(HTTP_DATE).to_string());
        for (name, value) in [(ETAG, &self.tag), (LAST_MODIFIED, &last_modified)] {
            let value = value.as_deref().map(HeaderValue::try_from);
            if let Some(Ok(value)) = value {
                headers.insert(name, value);
            }
        }
    }
}

/// Strips the mark of a weak tag: whether a file is known does not depend on it.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn moment(value: &HeaderValue) -> Option<DateTime<Utc>> {
    let parsed = NaiveDateTime::parse_from_str(value.to_str().ok()?, HTTP_DATE);
    Some(parsed.ok()?.and_utc())
}
