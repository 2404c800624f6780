//! Where rows are in their lists: blocks of neighbouring rows with exact counts, changed in the
//! transaction that changes the rows, so that a page's number leads to its block.
//!
//! A block begins with a row whose id's hash begins with zeros, and ends before the next such row.
//! So the blocks depend on the rows alone: however events were batched, and in whatever order rows
//! were added and removed, a fold of the log leads to the same blocks.

mod plan;
mod store;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use self::plan::{Changes, Key, LEVELS, Level, Plan, key, ranges};
use self::store::{Block, BlockQuery};

/// The rows of a kind in the order of its table: newest first and then by id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The table, whose name is that of the kind.
    pub(super) table: &'static str,
    /// The column of the rows' ids.
    pub(super) id: &'static str,
    /// The column of the list's parent, if it has one.
    pub(super) parent: Option<&'static str>,
    /// The column with one list per value, if there is one.
    pub(super) state: Option<State>,
}

/// The column of a state, with one list for each of its values.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// The column holds a word, compared as it is.
    Word(&'static str),
    /// The column holds free text. A list has the rows whose text begins the same, whatever its
    /// case, as another column has it; rows without a text are in none of these lists.
    Text(&'static str),
}

impl Rows {
    /// The indexes used to count blocks.
    pub(super) fn indexes(self) -> Vec<String> {
        let table = self.table;
        let by_state = self.state.map(|state| match state {
            State::Word(column) => format!("{table}_newest_by_{column}"),
            State::Text(column) => format!("{table}_by_{column}"),
        });
        [format!("{table}_newest")]
            .into_iter()
            .chain(by_state)
            .collect()
    }
}

impl State {
    /// The column whose value the rows of a list share.
    fn key(self) -> String {
        match self {
            Self::Word(column) => column.to_owned(),
            Self::Text(column) => format!("{column}_key"),
        }
    }
}

/// A list of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct List {
    org_id: String,
    /// Empty if the list has no parent.
    parent: String,
    /// Empty for the rows of all states. Free text is as it was written, until it is to be written
    /// here.
    state: String,
}

/// The fields that decide the place of a row in the lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowKey<'a> {
    pub(super) org_id: &'a str,
    pub(super) parent: &'a str,
    pub(super) state: &'a str,
    pub(super) created_at: DateTime<Utc>,
    pub(super) id: &'a str,
}

/// The changes that a batch makes to the lists of a kind.
pub(super) struct Blocks {
    rows: Rows,
    lists: BTreeMap<List, Changes>,
}

impl Blocks {
    pub(super) fn of(rows: Rows) -> Self {
        let lists = BTreeMap::new();
        Self { rows, lists }
    }

    /// Adds a row at its place.
    pub(super) fn add(&mut self, row: RowKey<'_>) {
        self.change(row, 1);
    }

    /// Removes a row from its place.
    pub(super) fn remove(&mut self, row: RowKey<'_>) {
        self.change(row, -1);
    }

    /// Adds the row if `change` is 1, removes it if it is -1.
    pub(super) fn change(&mut self, row: RowKey<'_>, change: i64) {
        let state = self.rows.state.map(|_| row.state);
        let state = state.filter(|state| !state.is_empty());
        for state in [""].into_iter().chain(state) {
            let list = List {
                org_id: row.org_id.to_owned(),
                parent: row.parent.to_owned(),
                state: state.to_owned(),
            };
            let changes = self.lists.entry(list).or_default();
            *changes.entry(key(row.created_at, row.id)).or_default() += change;
        }
    }

    /// Writes the changes. The rows must have been written before: blocks whose bounds change are
    /// counted again.
    pub(super) async fn write(mut self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.leave_out_unchanged();
        if let Some(State::Text(_)) = self.rows.state {
            self.join_equal_states(rows).await?;
            self.leave_out_unchanged();
        }
        if self.lists.is_empty() {
            return Ok(());
        }
        let parts: Vec<_> = self
            .lists
            .iter()
            .flat_map(|(list, changes)| LEVELS.map(|level| (list, level, changes)))
            .collect();
        let known = self.read(rows, &parts).await?;
        let plans = parts
            .iter()
            .zip(known)
            .map(|((list, level, changes), known)| {
                (*list, *level, Plan::of(changes, *level, known))
            });
        self.carry_out(rows, &plans.collect::<Vec<_>>()).await
    }

    fn leave_out_unchanged(&mut self) {
        for changes in self.lists.values_mut() {
            changes.retain(|_, change| *change != 0);
        }
        self.lists.retain(|_, changes| !changes.is_empty());
    }

    /// Merges the lists whose states are the same text. Postgres decides which are, as it compares
    /// the texts of queries as well.
    async fn join_equal_states(&mut self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        let states = self.lists.keys().map(|list| list.state.as_str());
        let states: BTreeSet<_> = states.filter(|state| !state.is_empty()).collect();
        if states.is_empty() {
            return Ok(());
        }
        let keys = store::keys_of(rows, &states).await?;
        for (mut list, changes) in std::mem::take(&mut self.lists) {
            if let Some(key) = keys.get(&list.state) {
                list.state.clone_from(key);
            }
            let joined = self.lists.entry(list).or_default();
            for (key, change) in changes {
                *joined.entry(key).or_default() += change;
            }
        }
        Ok(())
    }

    /// Reads the blocks around the changes, for each list and level.
    async fn read(
        &self,
        rows: &mut PgConnection,
        parts: &[(&List, Level, &Changes)],
    ) -> Result<Vec<BTreeSet<Key>>, sqlx::Error> {
        let mut queries = Vec::with_capacity(parts.len());
        for (part, (list, level, changes)) in parts.iter().enumerate() {
            queries.extend(ranges(changes).map(|(from, to)| BlockQuery {
                part,
                list,
                level: *level,
                from,
                to,
            }));
        }
        let mut known = vec![BTreeSet::new(); parts.len()];
        for (place, key) in store::read(rows, self.rows.table, &queries).await? {
            known[queries[place].part].insert(key);
        }
        Ok(known)
    }

    async fn carry_out(
        &self,
        rows: &mut PgConnection,
        plans: &[(&List, Level, Plan)],
    ) -> Result<(), sqlx::Error> {
        let kind = self.rows.table;
        let (mut gone, mut anew, mut shifted) = (Vec::new(), Vec::new(), Vec::new());
        for (list, level, plan) in plans {
            let block = |key, change| Block {
                list,
                level: *level,
                key,
                change,
            };
            gone.extend(plan.gone.iter().map(|key| block(key, 0)));
            anew.extend(plan.anew.iter().map(|key| block(key, 0)));
            shifted.extend(plan.shifted.iter().map(|(key, change)| block(key, *change)));
        }
        let mut is_any_empty = store::shift(rows, kind, &shifted).await?;
        if !anew.is_empty() {
            store::delete(rows, kind, &gone).await?;
            store::make(rows, kind, &anew).await?;
            is_any_empty |= store::count(rows, self.rows, &anew).await?;
        }
        if is_any_empty {
            let lists: Vec<_> = self.lists.keys().collect();
            store::delete_empty(rows, kind, &lists).await?;
        }
        Ok(())
    }
}
