//! The part of a text that the fewest records contain.
//!
//! The trigram index visits the records of every trigram of a text, including those that nearly
//! every record has: of "Client 77" those of `cli`, `lie`, `ien` and `ent`. By its rarest part
//! alone the same records are found several times as fast. Each is compared with the whole text.

use std::ops::Range;

use sqlx::{PgPool, QueryBuilder};

use super::counts::{Counts, Text};
use super::query::Search;
use super::statement::Within;

/// Characters of the pieces whose records are counted: two trigrams.
const PIECE: usize = 4;
/// Maximum number of pieces considered, from the text's beginning.
const PIECES: i32 = 64;

/// Maximum percentage of records that contain a rare part.
const RARE: i64 = 1;

/// The part by which a text is looked up, in lower case. It may be the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(super) text: String,
    /// Whether so few contain it that scanning a list until enough are found may take long, while
    /// looking all of them up does not.
    pub(super) is_rare: bool,
}

impl Within<'_> {
    /// Returns the longest part of the search text whose pieces all have the lowest count in the
    /// texts that Postgres keeps as statistics, some hundred of any organization. `None` if there
    /// are none yet, or without a search text or with only a short one.
    pub(super) async fn rarest_part(
        self,
        search: &Search,
        models: &PgPool,
        counts: &Counts,
    ) -> Result<Option<Part>, sqlx::Error> {
        let sought = search.text.as_ref();
        let Some(sought) = sought.filter(|text| text.chars().count() > PIECE) else {
            return Ok(None);
        };
        let text = Text {
            org: self.org.clone(),
            kind: self.kind.table,
            sought: sought.clone(),
        };
        let mut part = counts.part(&text);
        if part.is_none() {
            part = self.ask_for_rarest(sought, models).await?;
            if let Some(part) = &part {
                counts.keep_part(text, part.clone());
            }
        }
        Ok(part)
    }

    async fn ask_for_rarest(
        self,
        text: &str,
        models: &PgPool,
    ) -> Result<Option<Part>, sqlx::Error> {
        let mut query = QueryBuilder::new(
            "WITH sample AS MATERIALIZED (
                 SELECT unnest(most_common_vals::text::text[] || histogram_bounds::text::text[])
                        AS search_text
                 FROM pg_stats
                 WHERE schemaname = current_schema() AND attname = 'search_text' AND tablename = ",
        );
        query.push_bind(self.kind.table);
        query
            .push("), asked AS (SELECT lower(")
            .push_bind(text)
            .push(") AS text)");
        query.push(" SELECT text, (SELECT count(*) FROM sample), ARRAY(");
        query.push(
            "SELECT (SELECT count(*) FROM sample WHERE strpos(search_text, substr(text, nth, ",
        );
        query
            .push(PIECE)
            .push(")) > 0) FROM generate_series(1, least(");
        query.push(PIECES).push(", length(text) - ").push(PIECE - 1);
        query.push(")) AS nth) FROM asked");
        let found = query.build_query_as::<(String, i64, Vec<i64>)>();
        let (text, sample, counts) = found.persistent(false).fetch_one(models).await?;
        Ok((sample > 0).then(|| Part::of(&text, sample, &counts)))
    }
}

impl Part {
    /// Returns the rarest part of a text, by how many of a sample contain each piece of it.
    fn of(text: &str, sample: i64, counts: &[i64]) -> Self {
        let run = longest_run_of_least(counts);
        let least = counts.get(run.start).copied().unwrap_or(sample);
        let part = text.chars().skip(run.start).take(run.len() + PIECE - 1);
        Self {
            text: if run.len() == counts.len() {
                text.to_owned()
            } else {
                part.collect()
            },
            is_rare: least * 100 <= sample * RARE,
        }
    }
}

/// Returns the longest run of the smallest number, the first of several.
fn longest_run_of_least(counts: &[i64]) -> Range<usize> {
    let least = counts.iter().min();
    let mut longest = 0..0;
    let mut run = 0..0;
    for (nth, count) in counts.iter().enumerate() {
        let start = if run.is_empty() { nth } else { run.start };
        run = if Some(count) == least {
            start..nth + 1
        } else {
            0..0
        };
        if run.len() > longest.len() {
            longest = run.clone();
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_looked_up_by_what_fewest_have_of_it() {
        let of = |text, counts: &[i64]| Part::of(text, 100, counts);
        let part = |text: &str, is_rare| Part {
            text: text.to_owned(),
            is_rare,
        };
        let client = [100, 100, 100, 100, 11, 2];
        assert_eq!(of("client 77", &client), part("t 77", false));
        assert_eq!(of("ömer 100%", &[9, 9, 9, 0, 0, 9]), part("r 100", true));
        assert_eq!(of("wonder", &[1, 1, 1]), part("wonder", true));
        // The text continues after the considered pieces.
        let long = "x".repeat(200);
        assert_eq!(of(&long, &[7; 64]), part(&long, false));
    }

    #[test]
    fn the_longest_run_of_the_least_number_is_found() {
        for (counts, run) in [
            (&[][..], 0..0),
            (&[5], 0..1),
            (&[5, 5, 5], 0..3),
            (&[9, 9, 2, 9, 2, 2, 9], 4..6),
            (&[0, 0, 9, 0, 0], 0..2),
            (&[9, 1, 0], 2..3),
        ] {
            assert_eq!(longest_run_of_least(counts), run, "{counts:?}");
        }
    }
}
