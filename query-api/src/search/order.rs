//! The order of a list in SQL, and the rows after a position in it.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::asked::Search;
use super::kind::{Field, Holds, Kind};
use crate::paging::{SortKey, Sorted};

/// The order of a list.
#[derive(Clone, Copy)]
pub(super) struct Order {
    by: Sorted,
    /// Its expression in SQL.
    key: &'static str,
    descending: bool,
}

/// A range of a list.
pub(super) enum Stretch<'a> {
    /// From its beginning.
    All,
    /// After a position in a list that is ordered by this and then by id.
    Behind(&'a SortKey, &'a str),
    /// After an item, within its group.
    InGroup(Member<'a>, DateTime<Utc>, &'a str),
    /// The groups after one.
    BehindGroup(Member<'a>),
}

/// The value of a field that a group has in common.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    field: &'static Field,
    value: &'a str,
}

impl Order {
    pub(super) fn of(search: &Search, kind: &'static Kind) -> Self {
        let key = match search.by {
            Sorted::Created => None,
            Sorted::Name => Some(kind.name),
            Sorted::Amount => kind.amount,
            Sorted::Grouped(grouping) => kind.field(grouping).map(|field| field.key),
        };
        Self {
            by: search.by,
            key: key.unwrap_or("created_at"),
            descending: search.descending,
        }
    }

    /// Appends the columns that give a row's position.
    pub(super) fn push_place(self, query: &mut QueryBuilder<Postgres>) {
        let (text, amount) = match self.by {
            Sorted::Created => ("NULL", "NULL"),
            Sorted::Amount => ("NULL", self.key),
            Sorted::Name | Sorted::Grouped(_) => (self.key, "NULL"),
        };
        query.push(text).push("::text AS place_text, ");
        query.push(amount).push("::bigint AS place_amount");
    }

    /// Appends the order by its key, or by the name that a subquery gives it.
    pub(super) fn push(self, query: &mut QueryBuilder<Postgres>, key: &str) {
        query.push(" ORDER BY ").push(key);
        query.push(match (self.by, self.descending) {
            (Sorted::Grouped(_), false) => ", created_at DESC, id",
            (Sorted::Grouped(_), true) => " DESC, created_at, id DESC",
            (_, false) => ", id",
            (_, true) => " DESC, id",
        });
    }

    pub(super) fn key(self) -> &'static str {
        self.key
    }

    /// Appends the SQL condition, after others, that a row is in a range.
    pub(super) fn push_stretch(self, query: &mut QueryBuilder<Postgres>, stretch: &Stretch<'_>) {
        let (further, back) = if self.descending {
            ("<", ">")
        } else {
            (">", "<")
        };
        match stretch {
            Stretch::All => {}
            Stretch::Behind(key, id) => {
                // Only the first comparison bounds the index scan. The rest breaks ties.
                query.push(" AND ").push(self.key).push(further).push("= ");
                push_key(query, key);
                query.push(" AND (").push(self.key).push(further);
                push_key(query, key);
                query
                    .push(" OR id > ")
                    .push_bind((*id).to_owned())
                    .push(")");
            }
            Stretch::InGroup(group, at, id) => {
                // Within a group the newest come first, unless the whole order is reversed.
                group.push(query, "=");
                query
                    .push(" AND created_at ")
                    .push(back)
                    .push("= ")
                    .push_bind(*at);
                query
                    .push(" AND (created_at ")
                    .push(back)
                    .push(" ")
                    .push_bind(*at);
                query
                    .push(" OR id ")
                    .push(further)
                    .push(" ")
                    .push_bind((*id).to_owned());
                query.push(")");
            }
            Stretch::BehindGroup(group) => group.push(query, further),
        }
    }
}

impl<'a> Stretch<'a> {
    /// Returns the part of a list after an item. Groups are read separately, so that each statement
    /// is one range of the index, however large a group is.
    pub(super) fn behind(after: Option<(&'a SortKey, &'a str)>, kind: &'static Kind) -> Vec<Self> {
        let Some((key, id)) = after else {
            return vec![Self::All];
        };
        if let SortKey::Grouped(grouping, value, at) = key
            && let Some(field) = kind.field(*grouping)
        {
            let group = Member { field, value };
            return vec![Self::InGroup(group, *at, id), Self::BehindGroup(group)];
        }
        vec![Self::Behind(key, id)]
    }
}

impl Member<'_> {
    /// Compares a row's value with that of the group, both as indexed.
    fn push(self, query: &mut QueryBuilder<Postgres>, how: &str) {
        query.push(" AND ").push(self.field.key).push(" ");
        query.push(how).push(" ");
        match self.field.holds {
            Holds::Text | Holds::Word => query.push_bind(self.value.to_owned()),
            Holds::Flag => query.push_bind(self.value == "true"),
        };
    }
}

fn push_key(query: &mut QueryBuilder<Postgres>, key: &SortKey) {
    match key {
        SortKey::Created(at) => query.push_bind(*at),
        SortKey::Name(text) | SortKey::Grouped(_, text, _) => query.push_bind(text.clone()),
        SortKey::Amount(amount) => query.push_bind(*amount),
    };
}
