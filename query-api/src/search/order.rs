//! The order of a list in SQL, and the rows after a position in it.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::kind::{Field, Holds, Kind};
use super::query::Search;
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
    /// All of it.
    All,
    /// After an item, among those of the same key.
    InTie(&'a SortKey, &'a str),
    /// The items with a key after this one.
    BehindTie(&'a SortKey),
    /// The items with the last key of the rows [`WALKED`].
    LastTie,
    /// After an item of a group, among those of the same time.
    InMoment(Member<'a>, DateTime<Utc>, &'a str),
    /// The items of a group behind this time.
    InGroup(Member<'a>, DateTime<Utc>),
    /// The groups after one.
    BehindGroup(Member<'a>),
}

/// The name in SQL of the first rows of a list, in the order of its key alone.
pub(super) const WALKED: &str = "walked";

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
        self.push_key_only(query, key);
        query.push(match (self.by, self.descending) {
            (Sorted::Grouped(_), false) => ", created_at DESC, id",
            (Sorted::Grouped(_), true) => ", created_at, id DESC",
            _ => ", id",
        });
    }

    /// Appends the order by its key alone.
    pub(super) fn push_key_only(self, query: &mut QueryBuilder<Postgres>, key: &str) {
        query.push(" ORDER BY ").push(key);
        if self.descending {
            query.push(" DESC");
        }
    }

    /// Whether its index has the items of equal key in the same order. If not, they would all have
    /// to be sorted for the first of them.
    pub(super) fn has_ties_in_order(self) -> bool {
        match self.by {
            Sorted::Created | Sorted::Amount => self.descending,
            Sorted::Name => !self.descending,
            Sorted::Grouped(_) => true,
        }
    }

    /// The column that [`Self::push_place`] gives its key.
    pub(super) fn place(self) -> &'static str {
        match self.by {
            Sorted::Created => "created_at",
            Sorted::Amount => "place_amount",
            Sorted::Name | Sorted::Grouped(_) => "place_text",
        }
    }

    /// Appends SQL for the last key of the rows [`WALKED`].
    pub(super) fn push_last(self, query: &mut QueryBuilder<Postgres>) {
        let last = if self.descending { "min" } else { "max" };
        query
            .push("(SELECT ")
            .push(last)
            .push("(")
            .push(self.place());
        query.push(") FROM ").push(WALKED).push(")");
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
            Stretch::InTie(key, id) => {
                query.push(" AND ").push(self.key).push(" = ");
                push_key(query, key);
                query.push(" AND id > ").push_bind((*id).to_owned());
            }
            Stretch::BehindTie(key) => {
                query.push(" AND ").push(self.key).push(" ").push(further);
                query.push(" ");
                push_key(query, key);
            }
            Stretch::LastTie => {
                query.push(" AND ").push(self.key).push(" = ");
                self.push_last(query);
            }
            Stretch::InMoment(group, at, id) => {
                group.push(query, "=");
                query.push(" AND created_at = ").push_bind(*at);
                query.push(" AND id ").push(further).push(" ");
                query.push_bind((*id).to_owned());
            }
            Stretch::InGroup(group, at) => {
                // Within a group the newest come first, unless the whole order is reversed.
                group.push(query, "=");
                query.push(" AND created_at ").push(back).push(" ");
                query.push_bind(*at);
            }
            Stretch::BehindGroup(group) => group.push(query, further),
        }
    }
}

impl<'a> Stretch<'a> {
    /// Returns the part of a list after an item. Items of the same key or group are read separately,
    /// so that each statement is one range of the index, however many these are.
    pub(super) fn behind(after: Option<(&'a SortKey, &'a str)>, kind: &'static Kind) -> Vec<Self> {
        let Some((key, id)) = after else {
            return vec![Self::All];
        };
        if let SortKey::Grouped(grouping, value, at) = key
            && let Some(field) = kind.field(*grouping)
        {
            let group = Member { field, value };
            return vec![
                Self::InMoment(group, *at, id),
                Self::InGroup(group, *at),
                Self::BehindGroup(group),
            ];
        }
        vec![Self::InTie(key, id), Self::BehindTie(key)]
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
