//! The part of a text that fewest records have.
//!
//! The index of trigrams goes through the records of every trigram of a text, also of those that
//! nearly every record has: of "Client 77" those of `cli`, `lie`, `ien` and `ent`. By its rarest
//! part alone the same records are found several times as fast, and compared with all of it.

use std::ops::Range;

use sqlx::{PgPool, QueryBuilder};

use super::statement::Within;

/// Characters of the pieces of which it is told how many records have them: two trigrams.
const PIECE: usize = 4;
/// Pieces that are looked at, from the text's beginning.
const PIECES: i32 = 64;
/// Newest records that say how many have a piece.
const SAMPLE: i64 = 100;

impl Within<'_> {
    /// The longest part of a text, in lower case, of which no piece is had by more of the newest
    /// records than any other; `None` where that is all of it.
    pub(super) async fn rarest_part(
        self,
        text: &str,
        models: &PgPool,
    ) -> Result<Option<String>, sqlx::Error> {
        if text.chars().count() <= PIECE {
            return Ok(None);
        }
        let mut query = QueryBuilder::new("WITH newest AS MATERIALIZED (SELECT search_text FROM ");
        query.push(self.kind.table).push(" WHERE org_id = ");
        query.push_bind(self.org.as_str().to_owned());
        query.push(" ORDER BY created_at DESC, id LIMIT ");
        query.push_bind(SAMPLE);
        query.push("), asked AS (SELECT lower(").push_bind(text);
        query.push(") AS text) SELECT text, ARRAY(SELECT (SELECT count(*) FROM newest");
        query.push(" WHERE strpos(search_text, substr(text, nth, ");
        query
            .push(PIECE)
            .push(")) > 0) FROM generate_series(1, least(");
        query.push(PIECES).push(", length(text) - ").push(PIECE - 1);
        query.push(")) AS nth) FROM asked");
        let found = query.build_query_as::<(String, Vec<i64>)>();
        let (text, counts) = found.persistent(false).fetch_one(models).await?;
        let run = longest_run_of_least(&counts);
        let part = text.chars().skip(run.start).take(run.len() + PIECE - 1);
        let part: String = part.collect();
        Ok((!run.is_empty() && part != text).then_some(part))
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
