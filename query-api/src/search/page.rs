//! The statement that reads a page of the records found.

use sqlx::{Postgres, QueryBuilder};

use super::order::{Order, Stretch, WALKED};
use super::query::Search;
use super::rarest::Part;
use super::statement::Within;
use crate::paging::Page;

/// The rows of a list.
#[derive(Clone, Copy)]
struct Rows<'a> {
    within: Within<'a>,
    columns: &'static str,
    search: &'a Search,
    part: Option<&'a Part>,
    order: Order,
}

impl Within<'_> {
    /// Returns the statement that reads a page. If a part of the text is given, it is looked up.
    pub(super) fn page(
        self,
        columns: &'static str,
        (search, part): (&Search, Option<&Part>),
        page: &Page,
    ) -> QueryBuilder<Postgres> {
        let rows = Rows {
            within: self,
            columns,
            search,
            part,
            order: Order::of(search, self.kind),
        };
        let stretches = Stretch::behind(page.after(), self.kind);
        // A page that is found by its number is preceded by rows that are read anyway.
        if page.offset() == 0 && !rows.order.has_ties_in_order() {
            rows.by_walking(&stretches, page)
        } else {
            rows.by_order(&stretches, page)
        }
    }
}

impl Rows<'_> {
    /// Reads the ranges in the order of the index.
    fn by_order(self, stretches: &[Stretch<'_>], page: &Page) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new("");
        if let [stretch] = stretches {
            self.push(&mut query, stretch);
            self.order.push(&mut query, self.order.key());
        } else {
            query.push("SELECT * FROM (");
            for (nth, stretch) in stretches.iter().enumerate() {
                query.push(if nth == 0 { "(" } else { " UNION ALL (" });
                self.push(&mut query, stretch);
                self.order.push(&mut query, self.order.key());
                query.push(" LIMIT ").push_bind(page.fetched()).push(")");
            }
            query.push(") AS found");
            self.order.push(&mut query, self.order.place());
        }
        query.push(" OFFSET ").push_bind(page.offset());
        query.push(" LIMIT ").push_bind(page.fetched());
        query
    }

    /// Reads the first rows in the order of their key alone, as the index has them, but those of the
    /// last key among them by their id: of the others there are no more than these.
    fn by_walking(self, stretches: &[Stretch<'_>], page: &Page) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new("WITH ");
        let order = self.order;
        query.push(WALKED).push(" AS MATERIALIZED (");
        let walked = stretches.last().unwrap_or(&Stretch::All);
        self.push(&mut query, walked);
        order.push_key_only(&mut query, order.key());
        query.push(" LIMIT ").push_bind(page.fetched());
        query.push(") SELECT * FROM (");
        if let [tie, _] = stretches {
            self.push_tie(&mut query, tie, page);
            query.push(" UNION ALL ");
        }
        query.push("(SELECT * FROM ").push(WALKED);
        query.push(" WHERE ").push(order.place()).push(" <> ");
        order.push_last(&mut query);
        query.push(") UNION ALL ");
        self.push_tie(&mut query, &Stretch::LastTie, page);
        query.push(") AS found");
        order.push(&mut query, order.place());
        query.push(" LIMIT ").push_bind(page.fetched());
        query
    }

    /// Appends the first rows of a range whose rows have the same key.
    fn push_tie(self, query: &mut QueryBuilder<Postgres>, tie: &Stretch<'_>, page: &Page) {
        query.push("(");
        self.push(query, tie);
        query.push(" ORDER BY id LIMIT ");
        query.push_bind(page.fetched()).push(")");
    }

    /// Appends the rows of a range, in no order.
    fn push(self, query: &mut QueryBuilder<Postgres>, stretch: &Stretch<'_>) {
        let table = self.within.kind.table;
        query.push("SELECT id, created_at, ").push(self.columns);
        query.push(", ");
        self.order.push_place(query);
        query.push(" FROM ");
        // A subquery has no limit that would make the planner scan in order.
        let is_rare = self.part.is_some_and(|part| part.is_rare);
        if is_rare {
            query.push("(SELECT * FROM ");
        }
        query.push(table);
        self.within.conditions(query, self.search, self.part);
        self.order.push_stretch(query, stretch);
        if is_rare {
            query.push(" OFFSET 0) AS ").push(table);
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use schemas::OrgId;

    use super::super::kind::{CLIENTS, Kind, LEADS, ORDERS};
    use super::*;
    use crate::paging::Parameters;

    /// Returns the statement of the first page, or of the one at a cursor.
    fn statement(kind: &'static Kind, sort: &str, cursor: Option<&str>) -> String {
        let cursor = cursor.map(|text| format!("&cursor={}", URL_SAFE_NO_PAD.encode(text)));
        let uri = format!("/list?sort={sort}{}", cursor.unwrap_or_default());
        let uri = uri.parse().unwrap();
        let parameters = Parameters::of(&uri).unwrap();
        let search = Search::from_parameters(&parameters, kind).unwrap();
        let page = Page::asked_in(&parameters, search.by, 20).unwrap();
        let org = OrgId::from("org");
        let within = Within::all(kind, &org);
        within.page("score", (&search, None), &page).into_string()
    }

    #[test]
    fn after_an_item_its_equals_and_the_others_are_ranges_of_their_own() {
        let after = Some("2/n3/adaid");
        let by_name = statement(&LEADS, "name", after);
        assert_eq!(by_name.matches("UNION ALL").count(), 1, "{by_name}");
        assert!(!by_name.contains(WALKED), "{by_name}");
        let reversed = statement(&LEADS, "-name", after);
        assert_eq!(reversed.matches("UNION ALL").count(), 2, "{reversed}");
        let by_city = statement(&CLIENTS, "city", Some("2/c7/5/parisid"));
        assert_eq!(by_city.matches("UNION ALL").count(), 2, "{by_city}");
        for one in [by_name, reversed, by_city] {
            assert!(one.contains(" = $") && one.contains(" AND id > $"), "{one}");
            assert!(!one.contains(" OR ") && !one.contains(">="), "{one}");
        }
    }

    #[test]
    fn equals_are_sorted_only_where_the_index_has_them_in_another_order() {
        for (kind, sort, sorts) in [
            (&ORDERS, "amount", true),
            (&ORDERS, "-amount", false),
            (&ORDERS, "createdAt", true),
            (&ORDERS, "name", false),
            (&ORDERS, "-name", true),
            (&ORDERS, "number", false),
            (&ORDERS, "-number", false),
        ] {
            let first = statement(kind, sort, None);
            assert_eq!(first.contains(WALKED), sorts, "{first}");
            if sorts {
                let order = first.split(WALKED).nth(1).unwrap();
                let order = order.split(" LIMIT ").next().unwrap();
                assert!(!order.contains(", id"), "by its key alone: {first}");
            }
        }
    }
}
