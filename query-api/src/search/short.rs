//! Lists of which an organization or a person has few: what they are asked for, and their pages.
//!
//! For every request Postgres counts, compares and sorts all of an owner's rows. Settings bound how
//! many workflows, keys and webhooks there may be: 1,000, 10,000 and 500 by default. A person joins
//! each of their circles by a request of their own.

use service::HttpError;

use super::query::{anywhere, search_text};
use crate::paging::{DEFAULT_LIMIT, Page, Parameters, Sort, Sorted, Sorts};

/// What a request asks for of a short list.
#[derive(Debug)]
pub(crate) struct ShortQuery {
    /// A part of a name or of another text that identifies an item.
    pub(crate) text: Option<String>,
    sort: Sort,
    pub(crate) page: Page,
}

impl ShortQuery {
    /// Reads a request for a list that has these orders.
    pub(crate) fn from_parameters(
        parameters: &Parameters,
        sorts: &Sorts,
    ) -> Result<Self, HttpError> {
        let sort = Sort::from_parameters(parameters, sorts)?;
        Ok(Self {
            text: search_text(parameters)?,
            sort,
            page: Page::asked_in(parameters, sort.by, DEFAULT_LIMIT)?,
        })
    }

    /// The `LIKE` pattern of the text.
    pub(crate) fn pattern(&self) -> Option<String> {
        self.text.as_deref().map(anywhere)
    }

    /// The order as [`find_short_page!`] compares it: as `sort` names it.
    pub(crate) fn order(&self) -> &'static str {
        match (self.sort.by == Sorted::Name, self.sort.descending) {
            (true, false) => "name",
            (true, true) => "-name",
            (false, false) => "createdAt",
            (false, true) => "-createdAt",
        }
    }
}

/// Finds a page of `$row`s of a short list. `$rows` selects the rows of the owner `$1`, only those
/// with a text like `$2` unless that is null. They have an `id`, a time `created_at` and a `name`,
/// which may be null. `$columns` are selected from the rows of the page, named `page`. These also
/// have a `name_key`: the beginning of the name, as compared by lists, if the list is ordered by
/// it, else null. Further arguments begin at `$9`.
macro_rules! find_short_page {
    ($row:ident: $columns:literal from $rows:literal,
     ($owner:expr, $query:expr $(, $argument:expr)*), $models:expr) => {
        find_short_page!(
            $row: $columns from $rows, ordered by
            "CASE $3 WHEN 'name' THEN name_key END, CASE $3 WHEN '-name' THEN name_key END DESC,
             CASE $3 WHEN 'createdAt' THEN created_at END,
             CASE $3 WHEN '-createdAt' THEN created_at END DESC, id",
            ($owner, $query $(, $argument)*), $models
        )
    };
    ($row:ident: $columns:literal from $rows:literal, ordered by $order:literal,
     ($owner:expr, $query:expr $(, $argument:expr)*), $models:expr) => {
        sqlx::query_as!(
            $row,
            r#"WITH listed AS (
                   SELECT *, CASE WHEN $3::text IN ('name', '-name')
                                  THEN lower(left(coalesce(name, ''), 100)) COLLATE "C"
                             END AS name_key
                   FROM ("# + $rows + r#") AS list
               ), page AS (
                   SELECT * FROM listed
                   WHERE ($4::timestamptz IS NULL AND $5::text IS NULL)
                      OR CASE $3
                             WHEN 'name' THEN name_key > $5 OR name_key = $5 AND id > $6
                             WHEN '-name' THEN name_key < $5 OR name_key = $5 AND id > $6
                             WHEN 'createdAt' THEN created_at > $4 OR created_at = $4 AND id > $6
                             ELSE created_at < $4 OR created_at = $4 AND id > $6
                         END
                   ORDER BY "# + $order + r#" OFFSET $7 LIMIT $8
               )
               SELECT "# + $columns + r#" FROM page ORDER BY "# + $order,
            $owner,
            $query.pattern(),
            $query.order(),
            $query.page.after_time(),
            $query.page.after_name(),
            $query.page.after_id(),
            $query.page.offset(),
            $query.page.fetched(),
            $($argument),*
        )
        .fetch_all($models)
        .await
    };
}
pub(crate) use find_short_page;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paging::{BY_TIME, BY_TIME_AND_NAME};

    fn asked(query: &str, sorts: &Sorts) -> Result<ShortQuery, String> {
        let uri = format!("/list{query}").parse().unwrap();
        Parameters::of(&uri)
            .and_then(|parameters| ShortQuery::from_parameters(&parameters, sorts))
            .map_err(|error| error.message.into_owned())
    }

    #[test]
    fn a_short_list_is_newest_first_unless_asked_otherwise() {
        assert_eq!(asked("", BY_TIME).unwrap().order(), "-createdAt");
        for sort in ["createdAt", "-createdAt", "name", "-name"] {
            let query = asked(&format!("?sort={sort}"), BY_TIME_AND_NAME).unwrap();
            assert_eq!(query.order(), sort);
        }
        assert!(asked("?sort=name", BY_TIME).is_err());
    }

    #[test]
    fn a_cursor_of_another_order_is_refused() {
        // Behind the item "id" of the name "ada".
        let cursor = "cursor=Mi9uMy9hZGFpZA";
        let by_name = asked(&format!("?sort=name&{cursor}"), BY_TIME_AND_NAME);
        assert_eq!(by_name.unwrap().page.after_name(), Some("ada"));
        let by_time = asked(&format!("?{cursor}"), BY_TIME_AND_NAME);
        let refused = by_time.unwrap_err();
        assert!(refused.starts_with("cursor"), "{refused}");
    }
}
