//! The part of a text that fewest records have.
//!
//! The index of trigrams goes through the records of every trigram of a text, also of those that
//! nearly every record has: of "Client 77" those of `cli`, `lie`, `ien` and `ent`. By its rarest
//! part alone the same records are found several times as fast; each is compared with all of it.

use std::ops::Range;

use sqlx::{PgPool, QueryBuilder};

use super::asked::Search;
use super::counts::{Counts, Text};
use super::statement::Within;

/// Characters of the pieces of which it is told how many records have them: two trigrams.
const PIECE: usize = 4;
/// Pieces that are looked at, from the text's beginning.
const PIECES: i32 = 64;

impl Within<'_> {
    /// The part by which the text of a search is looked up: the longest of which no piece is had by
    /// more records than any other, as far as the texts say that Postgres keeps as statistics, some
    /// hundred of whichever organization. `None` where that is all of it, or where no text is looked
    /// for.
    pub(super) async fn rarest_part(
        self,
        search: &Search,
        models: &PgPool,
        counts: &Counts,
    ) -> Result<Option<String>, sqlx::Error> {
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
        Ok(part.filter(|part| part != sought))
    }

    /// The part, in lower case, or the text itself; `None` where there is nothing to go by yet.
    async fn ask_for_rarest(
        self,
        text: &str,
        models: &PgPool,
    ) -> Result<Option<String>, sqlx::Error> {
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
        query.push(" SELECT text, ARRAY(SELECT (SELECT count(*) FROM sample");
        query.push(" WHERE strpos(search_text, substr(text, nth, ");
        query
            .push(PIECE)
            .push(")) > 0) FROM generate_series(1, least(");
        query.push(PIECES).push(", length(text) - ").push(PIECE - 1);
        query.push(")) AS nth) FROM asked WHERE EXISTS (SELECT FROM sample)");
        let found = query.build_query_as::<(String, Vec<i64>)>();
        let found = found.persistent(false).fetch_optional(models).await?;
        Ok(found.map(|(lower, counts)| {
            let run = longest_run_of_least(&counts);
            if run.is_empty() || run.len() == counts.len() {
                return text.to_owned();
            }
            let part = lower.chars().skip(run.start).take(run.len() + PIECE - 1);
            part.collect()
        }))
    }
}

/// Where the longest run of the least number stands, the first of those that are as long.
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
